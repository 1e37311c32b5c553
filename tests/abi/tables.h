/* Generated from src/ffi by `make header`: do not edit. */
enum { LAST_CODE = -27, LAST_EVENT_KIND = 44 };
