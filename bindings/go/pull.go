package waybill

// #include "shim.h"
import "C"

// RecordPullIntent must be called before each pull (KEP-2535), and matched by exactly one
// RecordImagePulled or RecordImagePullFailed. The intent is on disk when it returns. The image need
// not parse; copy.ImageRef is ignored. ErrLimitExceeded also above 65,536 images in flight. The other
// errors are those of every recording method:
//
// ErrInvalidArgument (also for a runtime handler that the registry does not know), ErrLimitExceeded,
// ErrConflict, ErrNotOwner, ErrStoreFull, ErrDiskFull, ErrIO and ErrClosed leave the store unchanged.
// ErrOutcomeUnknown: the commit may or may not have happened; decisions answer "pull" until the store
// is closed and opened again.
func (s *Store) RecordPullIntent(copy ImageCopy) error {
	return s.call(func(h handle, e errorOut) C.waybill_code {
		return C.waybill_record_pull_intent(h, borrowCopy(&copy), e)
	})
}

// PulledImage is the result of a pull that succeeded.
type PulledImage struct {
	// Its ImageRef is what the runtime returned after the pull.
	ImageCopy
	// What it was pulled with; nil: unknown, and the record only says that it was pulled.
	Credentials *ImagePullCredentials
	// The manifest of an index that was pulled; nil: unknown.
	Manifest *PulledManifest
}

// RecordImagePulled merges the credentials into the record of p.ImageRef, drops one in-flight count
// of p.Image, and removes the intent with the last count: one transaction, on disk when it returns.
// ErrInvalidArgument: the image does not parse or the ref is empty; intent and count stay (kubelet
// behaviour). A copy with another manifest or guest platform than the record's is another image: the
// credentials of the old one are dropped. Further errors as of [Store.RecordPullIntent].
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

// PullFailure says how a pull that did not succeed ended.
type PullFailure int32

const (
	// PullFailed: the runtime reported failure; this pull did not bring the image.
	PullFailed PullFailure = C.WAYBILL_PULL_FAILED
	// PullOutcomeUnknown: time-out, cancelled, connection lost; the image may still arrive.
	// RulesClosed keeps the intent, RulesKubelet treats it as PullFailed.
	PullOutcomeUnknown PullFailure = C.WAYBILL_PULL_OUTCOME_UNKNOWN
)

// String returns "failed" or "outcomeUnknown".
func (f PullFailure) String() string {
	return word(int64(f), "PullFailure", "failed", "outcomeUnknown")
}

// RecordImagePullFailed drops one in-flight count of copy.Image and, with the last count, its intent.
// RulesClosed keeps an intent that an earlier process left, and any intent after PullOutcomeUnknown.
// copy.ImageRef is ignored. Errors as of [Store.RecordPullIntent].
func (s *Store) RecordImagePullFailed(copy ImageCopy, failure PullFailure) error {
	return s.call(func(h handle, e errorOut) C.waybill_code {
		return C.waybill_record_image_pull_failed(h, borrowCopy(&copy), C.int32_t(failure), e)
	})
}
