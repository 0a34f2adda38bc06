package waybill

// #include "shim.h"
import "C"

// String returns "linux/arm/v7" or "windows/amd64 10.0.20348.1970", followed by OS features in
// parentheses.
func (p Platform) String() string {
	var a arena
	defer a.free()
	var text *C.waybill_string
	var e *C.waybill_error
	if err := takeError(C.waybill_format_platform(put(&a, cPlatform(&a, &p)), &text, &e), e); err != nil {
		return p.OS + "/" + p.Architecture
	}
	return takeString(text)
}
