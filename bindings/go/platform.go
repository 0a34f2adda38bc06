package waybill

// #include "shim.h"
import "C"

// ParsePlatform reads OS/ARCHITECTURE[/VARIANT] and normalises it. ErrInvalidArgument: another number
// of parts, an empty part, or a character that is not a letter, a digit, '.', '_' or '-'.
func ParsePlatform(text string) (Platform, error) {
	var platform *C.waybill_platform
	var e *C.waybill_error
	code := C.waybill_parse_platform(borrow(text), &platform, &e)
	return take(platform, goPlatform), takeError(code, e)
}

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

// NormalisePlatform returns one spelling for platforms that have several, as containerd compares them:
// x86_64 is amd64, aarch64 is arm64, arm without a variant is v7, arm64/v8 is arm64, macos is darwin.
// ErrOutOfMemory.
func NormalisePlatform(p Platform) (Platform, error) {
	var a arena
	defer a.free()
	var normalised *C.waybill_platform
	var e *C.waybill_error
	code := C.waybill_normalise_platform(put(&a, cPlatform(&a, &p)), &normalised, &e)
	return take(normalised, goPlatform), takeError(code, e)
}
