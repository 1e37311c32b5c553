package com.metamystia.network;

/** A call was refused. The message is the name of the code and the library's own message. */
public final class NetworkException extends RuntimeException {
    private static final long serialVersionUID = 1;

    private final int code;

    NetworkException(int code, String message) {
        super(NativeMethods.nameOf(code) + " (" + code + "): " + message);
        this.code = code;
    }

    /** One of the result codes of {@link NativeMethods}. */
    public int code() {
        return code;
    }

    /** The name of the code, without MMN_. */
    public String name() {
        return NativeMethods.nameOf(code);
    }
}
