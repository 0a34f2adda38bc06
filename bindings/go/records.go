package waybill

// #include "shim.h"
import "C"

// GetRecord returns the record of copy.ImageRef under copy.RuntimeHandler; copy.Image is ignored.
// Credentials that are past their age ([AgeLimits]) or forgotten are left out, as in
// [Store.ListRecords]. ErrNotFound: the record certainly does not exist. ErrDamaged: stored data
// can't be read or may have been lost. ErrUnavailable: nothing can be read at this moment.
// ErrOutcomeUnknown, ErrOwned: as of [Store.RecordPullIntent], from the call on that found it.
// ErrInvalidArgument: the ref is empty, and copy.Image is not.
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
// quarantine. A credential that counts in the stored record keeps its proof. One that matches such
// a credential gets that one's proof. Any other is proven by the running pull of the image name, if
// there is one. Forgotten credentials are left out. ErrInvalidArgument: the ref is empty, or the
// handler is unknown and has no such record. Further errors as of [Store.RecordPullIntent].
func (s *Store) PutRecord(r ImagePulledRecord) error {
	var a arena
	defer a.free()
	record := put(&a, cImagePulledRecord(&a, &r))
	return s.call(func(h handle, e errorOut) C.waybill_code { return C.waybill_put_record(h, record, e) })
}
