/* The one function of Windows' bcryptprimitives.dll that Rust's standard library uses, for versions of Wine without the DLL (it
 * came with Wine 8.13). */
int __stdcall SystemFunction036(void *buffer, unsigned long length); /* RtlGenRandom */

__declspec(dllexport) int __stdcall ProcessPrng(unsigned char *data, unsigned long long length)
{
    return SystemFunction036(data, (unsigned long)length);
}
