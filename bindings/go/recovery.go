package waybill

// #include "shim.h"
import "C"

// RecoveryReport says what opening found, did and left, of a closed store, too.
func (s *Store) RecoveryReport() RecoveryReport {
	var report *C.waybill_recovery_report
	// It can fail only for lack of memory.
	_ = s.call(func(h handle, e errorOut) C.waybill_code {
		return C.waybill_get_recovery_report(h, &report, e)
	})
	return take(report, goRecoveryReport)
}
