package waybill

// #include "shim.h"
import "C"

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
