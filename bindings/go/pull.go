package waybill

// #include "shim.h"
import "C"

// RecordPullIntent is to be called before each pull (KEP-2535), and matched by exactly one
// RecordImagePulled or RecordImagePullFailed. The intent is on disk before it returns. The image
// need not parse; copy.ImageRef is ignored. ErrLimitExceeded also above 65,536 images in flight; further errors are those that
// every recording method can have:
//
// ErrInvalidArgument (also for a runtime handler that the registry does not know), ErrLimitExceeded,
// ErrConflict, ErrNotOwner, ErrStoreFull, ErrDiskFull, ErrIO, ErrClosed leave the store as it was.
// ErrOutcomeUnknown: the commit may or may not have happened; decisions answer "pull" from then on,
// until the store is closed and opened again.
func (s *Store) RecordPullIntent(copy ImageCopy) error {
	return s.call(func(h handle, e errorOut) C.waybill_code {
		return C.waybill_record_pull_intent(h, borrowCopy(&copy), e)
	})
}

// PulledImage is what a pull that succeeded brought.
type PulledImage struct {
	// Its ImageRef is what the runtime returned after the pull.
	ImageCopy
	// What it was pulled with; nil: not known, and the record then only says that it was pulled.
	Credentials *ImagePullCredentials
	// Which manifest of an index it was; nil: not known.
	Manifest *PulledManifest
}

// RecordImagePulled merges the credentials into the record of p.ImageRef, drops one in-flight count
// of p.Image, and removes its intent when none is left: one transaction, on disk when it returns.
// ErrInvalidArgument where the image does not parse or the ref is empty: intent and count stay
// (kubelet behaviour). A copy of another manifest or for another guest platform than the record's is
// another image: what was proven for the old one goes. Errors as of [Store.RecordPullIntent].
func (s *Store) RecordImagePulled(p PulledImage) error {
	var a arena
	defer a.free()
	var credentials *C.waybill_image_pull_credentials
	if p.Credentials != nil {
		credentials = one[C.waybill_image_pull_credentials](&a)
		*credentials = cCredentials(&a, p.Credentials)
	}
	var manifest *C.waybill_pulled_manifest
	if p.Manifest != nil {
		manifest = one[C.waybill_pulled_manifest](&a)
		manifest.digest = a.string(p.Manifest.Digest)
		manifest.platform = cPlatform(&a, &p.Manifest.Platform)
	}
	return s.call(func(h handle, e errorOut) C.waybill_code {
		return C.waybill_record_image_pulled(h, borrowCopy(&p.ImageCopy), credentials, manifest, e)
	})
}

// PullFailure is how a pull that did not succeed ended.
type PullFailure int32

const (
	// PullFailed: the runtime said so; the image did not arrive by this pull.
	PullFailed PullFailure = C.WAYBILL_PULL_FAILED
	// PullOutcomeUnknown: time-out, cancelled, connection lost; the image may still arrive.
	// RulesClosed keeps the intent, RulesKubelet treats it as PullFailed.
	PullOutcomeUnknown PullFailure = C.WAYBILL_PULL_OUTCOME_UNKNOWN
)

// String returns "failed" or "outcomeUnknown".
func (f PullFailure) String() string {
	return word(int64(f), "PullFailure", "failed", "outcomeUnknown")
}

// RecordImagePullFailed drops one in-flight count of copy.Image and, when none is left, its intent; under
// RulesClosed not an intent that was there before this process's own, nor after PullOutcomeUnknown.
// copy.ImageRef is ignored. Errors as of [Store.RecordPullIntent].
func (s *Store) RecordImagePullFailed(copy ImageCopy, failure PullFailure) error {
	return s.call(func(h handle, e errorOut) C.waybill_code {
		return C.waybill_record_image_pull_failed(h, borrowCopy(&copy), C.int32_t(failure), e)
	})
}
