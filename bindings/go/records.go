package waybill

// #include "shim.h"
import "C"

import "time"

// GetRecord returns the record of copy.ImageRef under copy.RuntimeHandler; copy.Image is ignored. It is
// the record as it counts, here and in [Store.ListRecords]: without credentials past their age
// ([AgeLimits]), and without what is forgotten. ErrNotFound: the record certainly does not exist. ErrDamaged: what is stored can't be read or may
// have been lost. ErrUnavailable: nothing can be read at this moment. ErrOutcomeUnknown, ErrOwned: as
// of [Store.RecordPullIntent], from the call that found it on. ErrInvalidArgument: the ref is empty,
// and copy.Image is not.
func (s *Store) GetRecord(copy ImageCopy) (ImagePulledRecord, error) {
	var record *C.waybill_proven_record
	err := s.call(func(h handle, e errorOut) C.waybill_code {
		return C.waybill_get_proven_record(h, borrowCopy(&copy), &record, e)
	})
	return take(record, goProvenRecord), err
}

// ListRecords returns every record, unordered. ErrDamaged: a record is unreadable.
func (s *Store) ListRecords() ([]ImagePulledRecord, error) {
	var records *C.waybill_proven_records
	err := s.call(func(h handle, e errorOut) C.waybill_code { return C.waybill_list_proven_records(h, &records, e) })
	return take(records, func(r *C.waybill_proven_records) []ImagePulledRecord {
		return goList(r.items, r.count, goProvenRecord)
	}), err
}

// PutRecord replaces the whole record of r.ImageRef under r.RuntimeHandler, and clears the ref's
// quarantine. A credential that counts in the stored record keeps its proof, one that matches one of
// those has that one's, and any other is proven by the running pull of the image name, or else by
// none; what is forgotten is left out. ErrInvalidArgument: the ref is empty, or the handler is unknown and has no such record.
// Further errors as of [Store.RecordPullIntent].
func (s *Store) PutRecord(r ImagePulledRecord) error {
	var a arena
	defer a.free()
	record := cRecord(&a, &r)
	return s.call(func(h handle, e errorOut) C.waybill_code { return C.waybill_put_record(h, record, e) })
}

// DeleteRecord deletes the record of copy.ImageRef under copy.RuntimeHandler, if it exists. Records of
// the ref under other handlers stay, as does its quarantine. Errors as of [Store.RecordPullIntent].
func (s *Store) DeleteRecord(copy ImageCopy) error {
	return s.call(func(h handle, e errorOut) C.waybill_code {
		return C.waybill_delete_record(h, borrowCopy(&copy), e)
	})
}

// HasIntent says whether an intent of copy.Image under copy.RuntimeHandler is stored. Like all methods
// about an intent, it ignores copy.ImageRef. Errors as of [Store.GetRecord].
func (s *Store) HasIntent(copy ImageCopy) (bool, error) {
	var exists C.bool
	err := s.call(func(h handle, e errorOut) C.waybill_code {
		return C.waybill_has_intent(h, borrowCopy(&copy), &exists, e)
	})
	return bool(exists), err
}

// ListIntents returns every intent, sorted by image string, then by handler. Errors as of
// [Store.GetRecord].
func (s *Store) ListIntents() ([]ImagePullIntent, error) {
	var intents *C.waybill_image_pull_intents
	err := s.call(func(h handle, e errorOut) C.waybill_code { return C.waybill_list_intents(h, &intents, e) })
	return take(intents, func(i *C.waybill_image_pull_intents) []ImagePullIntent {
		return goList(i.items, i.count, goIntent)
	}), err
}

// PutIntent stores an intent without counting a pull in flight. Errors as of
// [Store.RecordPullIntent].
func (s *Store) PutIntent(copy ImageCopy) error {
	return s.call(func(h handle, e errorOut) C.waybill_code {
		return C.waybill_put_intent(h, borrowCopy(&copy), e)
	})
}

// DeleteIntent deletes an intent, if it exists. While this process has a pull of the image in flight,
// the intent is deleted when that pull ends. Errors as of [Store.RecordPullIntent].
func (s *Store) DeleteIntent(copy ImageCopy) error {
	return s.call(func(h handle, e errorOut) C.waybill_code {
		return C.waybill_delete_intent(h, borrowCopy(&copy), e)
	})
}

// QuarantineKind says what an unreadable file was about, of which only the name is known.
type QuarantineKind int32

const (
	// QuarantinedImageRef: a file of pulled/, named by the SHA-256 of an image ref.
	QuarantinedImageRef QuarantineKind = C.WAYBILL_QUARANTINED_IMAGE_REF
	// QuarantinedImage: a file of pulling/, named by the SHA-256 of an image string.
	QuarantinedImage QuarantineKind = C.WAYBILL_QUARANTINED_IMAGE
)

// String returns "imageRef" or "image".
func (k QuarantineKind) String() string {
	return word(int64(k), "QuarantineKind", "", "imageRef", "image")
}

// QuarantineEntry closes an image until it is pulled again: a decision on it is "pull", counted as
// `error`.
type QuarantineEntry struct {
	Kind   QuarantineKind
	SHA256 string // 64 lower-case hex digits
	Source string // the file, below the kubelet directory
	Reason string
	Since  time.Time
}

// ListQuarantine returns every quarantine entry. Errors as of [Store.GetRecord].
func (s *Store) ListQuarantine() ([]QuarantineEntry, error) {
	var entries *C.waybill_quarantine_entries
	err := s.call(func(h handle, e errorOut) C.waybill_code { return C.waybill_list_quarantine(h, &entries, e) })
	return take(entries, func(q *C.waybill_quarantine_entries) []QuarantineEntry {
		return goList(q.items, q.count, goQuarantineEntry)
	}), err
}

func goQuarantineEntry(q *C.waybill_quarantine_entry) QuarantineEntry {
	return QuarantineEntry{
		Kind:   QuarantineKind(q.kind),
		SHA256: goString(q.sha256),
		Source: goString(q.source),
		Reason: goString(q.reason),
		Since:  goTime(q.since),
	}
}

// ListPreloaded returns the records that imports took from observed-preloaded/. Errors as of
// [Store.GetRecord].
func (s *Store) ListPreloaded() ([]ImagePreloadedRecord, error) {
	var records *C.waybill_image_preloaded_records
	err := s.call(func(h handle, e errorOut) C.waybill_code { return C.waybill_list_preloaded(h, &records, e) })
	return take(records, func(r *C.waybill_image_preloaded_records) []ImagePreloadedRecord {
		return goList(r.items, r.count, goPreloaded)
	}), err
}
