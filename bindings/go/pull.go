package waybill

// #include "shim.h"
import "C"

import "unsafe"

// RecordPullIntent must be called before each pull (KEP-2535), and after the pull exactly one of
// RecordImagePulled and RecordImagePullFailed. The intent is on disk when it returns. The ID lets a
// later process end the pull, too: under RulesClosed each call makes an open pull of its own, under
// RulesKubelet an image has one intent, whose ID every call returns. The image need not parse;
// copy.ImageRef is ignored. ErrLimitExceeded also above 65,536 images in flight. The other errors
// are those of every recording method:
//
// ErrInvalidArgument (also for a runtime handler that the registry does not know), ErrLimitExceeded,
// ErrConflict, ErrNotOwner, ErrStoreFull, ErrDiskFull, ErrIO and ErrClosed leave the store unchanged.
// ErrOutcomeUnknown: the commit may or may not have happened; decisions answer "pull" until the store
// is closed and opened again.
func (s *Store) RecordPullIntent(copy ImageCopy) (PullID, error) {
	var pull C.waybill_pull_id
	err := s.call(func(h handle, e errorOut) C.waybill_code {
		return C.waybill_record_pull_intent(h, borrowCopy(&copy), &pull, e)
	})
	return PullID(pull), err
}

// PulledImage is the result of a pull that succeeded.
type PulledImage struct {
	// Its ImageRef is the ref that the runtime returned after the pull.
	ImageCopy
	// The credentials of the pull; nil: unknown, and the record only says that the image was pulled.
	Credentials *ImagePullCredentials
	// As RecordPullIntent returned it. 0: the newest pull of this string, which counts as begun with
	// the oldest.
	Pull PullID
	// The manifest of an index that was pulled; nil: unknown.
	Manifest *PulledManifest
	// The runtime's entry of the image, for its spellings; nil: unknown.
	Entry *ImageOnNode
	// Who checked the credentials, and until when they are good.
	Terms ProofTerms
}

// RecordImagePulled merges the credentials into the record of p.ImageRef, drops one in-flight count
// of p.Image, and removes only its open pull (RulesClosed), or the intent with the last count
// (RulesKubelet): one transaction, on disk when it returns. A record under another spelling of the
// image is taken over: it is then stored under this ref (RulesClosed). ErrInvalidArgument: the
// image does not parse or the ref is empty; intent and count stay (kubelet behaviour). If the
// manifest or the guest platform differs from the record's, it is another image: the credentials of
// the old one are dropped. Further errors as of [Store.RecordPullIntent].
func (s *Store) RecordImagePulled(p PulledImage) error {
	var a arena
	defer a.free()
	var credentials *C.waybill_image_pull_credentials
	if p.Credentials != nil {
		credentials = one[C.waybill_image_pull_credentials](&a)
		*credentials = cCredentials(&a, p.Credentials)
	}
	result := one[C.waybill_pull_result](&a)
	result.struct_size = C.size_t(unsafe.Sizeof(*result))
	result.pull = C.waybill_pull_id(p.Pull)
	if p.Manifest != nil {
		manifest := one[C.waybill_pulled_manifest](&a)
		manifest.digest = a.string(p.Manifest.Digest)
		manifest.platform = cPlatform(&a, &p.Manifest.Platform)
		result.manifest = manifest
	}
	if p.Entry != nil {
		entry := one[C.waybill_image_on_node](&a)
		*entry = cImageOnNode(&a, p.Entry)
		result.image = entry
	}
	result.terms = cProofTerms(&a, &p.Terms)
	return s.call(func(h handle, e errorOut) C.waybill_code {
		return C.waybill_record_image_pulled(h, borrowCopy(&p.ImageCopy), credentials, result, e)
	})
}

// ClassifyPullError reads the text of an error of containerd, CRI-O, a CRI client (a gRPC status) or
// a kubelet. Metrics go by it, and no decision: registries choose some of these words.
// PullErrorUnknown: err is nil.
func ClassifyPullError(err error) PullErrorClass {
	if err == nil {
		return PullErrorUnknown
	}
	return PullErrorClass(C.waybill_classify_pull_error(borrow(err.Error())))
}
