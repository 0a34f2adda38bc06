package waybill

// #include "shim.h"
import "C"

// Platform is what an image was built for, and what it is to run on (OCI image index, `platform`).
type Platform struct {
	Architecture string // Go's names: "amd64", "arm64"
	OS           string // Go's names: "linux", "windows"
	OSVersion    string // Windows: "10.0.20348.1970"
	OSFeatures   []string
	Variant      string // of arm, "v5" to "v8"; of arm64; of amd64, "v1" to "v4"
}

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
	if err := takeError(C.waybill_format_platform(cPlatformOrNil(&a, &p), &text, &e), e); err != nil {
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
	code := C.waybill_normalise_platform(cPlatformOrNil(&a, &p), &normalised, &e)
	return take(normalised, goPlatform), takeError(code, e)
}

func cPlatform(a *arena, p *Platform) C.waybill_platform {
	return C.waybill_platform{
		architecture: a.string(p.Architecture),
		os:           a.string(p.OS),
		os_version:   a.string(p.OSVersion),
		os_features:  a.strings(p.OSFeatures),
		variant:      a.string(p.Variant),
	}
}

func cPlatformOrNil(a *arena, p *Platform) *C.waybill_platform {
	if p == nil {
		return nil
	}
	out := one[C.waybill_platform](a)
	*out = cPlatform(a, p)
	return out
}

func goPlatform(p *C.waybill_platform) Platform {
	return Platform{
		Architecture: goString(p.architecture),
		OS:           goString(p.os),
		OSVersion:    goString(p.os_version),
		OSFeatures:   goStrings(p.os_features),
		Variant:      goString(p.variant),
	}
}

func goPlatformOrNil(p *C.waybill_platform) *Platform {
	if p == nil {
		return nil
	}
	return new(goPlatform(p))
}
