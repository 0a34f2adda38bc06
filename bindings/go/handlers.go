package waybill

// #include "shim.h"
import "C"

// RuntimeHandler is what a RuntimeClass selects (KEP-4216). The empty name selects the default one.
type RuntimeHandler struct {
	// 1 to 253 bytes above 0x20, without '/'. Empty only for a default handler of unknown name.
	Name           string
	IsDefault      bool // the empty name selects it; a node has at most one
	UserNamespaces bool // CRI, RuntimeHandlerFeatures.user_namespaces
	// What its images must be built for, for example a utility VM's platform. nil: the host's.
	GuestPlatform *Platform
}

// RuntimesReport says what loading a list of handlers changed.
type RuntimesReport struct {
	Added    []string
	Vanished []string // their records stay until they are pruned
	// Handlers whose guest platform has changed since images were pulled, or, for the default, whose
	// name has. Those images must be verified again.
	Changed         []string
	RecordsToVerify uint64 // they lost their credentials
	// Runtime classes were off before: what an earlier use left under handlers was cleaned up.
	TurnedOn         bool
	RecordsCollapsed uint64
	IntentsCollapsed uint64
}

// CollapseReport says what turning runtime classes off changed.
type CollapseReport struct {
	Records         uint64 // taken from other handlers than the default
	Intents         uint64
	RecordsToVerify uint64   // under the default handler, now without credentials
	Handlers        []string // that they were taken from
}

// ListRuntimeHandlers returns the registry, sorted by name. Empty: no list was ever loaded, and only
// the default handler is known. ErrDamaged as of [Store.GetRecord].
func (s *Store) ListRuntimeHandlers() ([]RuntimeHandler, error) {
	var handlers *C.waybill_runtime_handlers
	err := s.call(func(h handle, e errorOut) C.waybill_code {
		return C.waybill_list_runtime_handlers(h, &handlers, e)
	})
	return take(handlers, goRuntimeHandlers), err
}

// ReplaceRuntimeHandlers replaces the whole registry. Records of vanished handlers stay until they
// are pruned. Records lose their credentials if their handler's guest platform changed since the
// pull. ErrInvalidArgument: a name that is malformed or occurs twice, two defaults, a nameless
// handler that is not the default, or an empty list although the registry has handlers
// ([AllowEmpty]). ErrConflict: this would change pulls in flight. After these errors nothing was
// changed. Further errors as of [Store.RecordPullIntent].
func (s *Store) ReplaceRuntimeHandlers(handlers []RuntimeHandler, options ...ChangeOption) (RuntimesReport, error) {
	var a arena
	defer a.free()
	list := one[C.waybill_runtime_handlers](&a)
	list.items, list.count = cList(&a, handlers, cRuntimeHandler)
	how := cChangeOptions(&a, options)
	var report *C.waybill_runtimes_report
	err := s.call(func(h handle, e errorOut) C.waybill_code {
		return C.waybill_replace_runtime_handlers(h, list, how, &report, e)
	})
	return take(report, goRuntimesReport), err
}

// CollapseRuntimeHandlers turns runtime classes off (KEP-4216, "Can the feature be disabled"): each
// record under another handler than the default becomes one without credentials under the default,
// as does the default's own record of that ref; each intent becomes the default's. ErrConflict: this
// process has pulls for other handlers in flight. Further errors as of [Store.RecordPullIntent].
func (s *Store) CollapseRuntimeHandlers(options ...ChangeOption) (CollapseReport, error) {
	var a arena
	defer a.free()
	how := cChangeOptions(&a, options)
	var report *C.waybill_collapse_report
	err := s.call(func(h handle, e errorOut) C.waybill_code {
		return C.waybill_collapse_runtime_handlers(h, how, &report, e)
	})
	return take(report, func(r *C.waybill_collapse_report) CollapseReport {
		return CollapseReport{
			Records:         uint64(r.records),
			Intents:         uint64(r.intents),
			RecordsToVerify: uint64(r.records_to_verify),
			Handlers:        goStrings(r.handlers),
		}
	}), err
}

func cRuntimeHandler(a *arena, h *RuntimeHandler) C.waybill_runtime_handler {
	return C.waybill_runtime_handler{
		name:            a.string(h.Name),
		is_default:      C.bool(h.IsDefault),
		user_namespaces: C.bool(h.UserNamespaces),
		guest_platform:  cPlatformOrNil(a, h.GuestPlatform),
	}
}

// cRuntimeHandlers keeps nil (unchanged) and empty (no handlers) apart.
func cRuntimeHandlers(a *arena, handlers []RuntimeHandler) *C.waybill_runtime_handlers {
	if handlers == nil {
		return nil
	}
	out := one[C.waybill_runtime_handlers](a)
	out.items, out.count = cList(a, handlers, cRuntimeHandler)
	return out
}

func goRuntimeHandlers(h *C.waybill_runtime_handlers) []RuntimeHandler {
	return goList(h.items, h.count, func(h *C.waybill_runtime_handler) RuntimeHandler {
		return RuntimeHandler{
			Name:           goString(h.name),
			IsDefault:      bool(h.is_default),
			UserNamespaces: bool(h.user_namespaces),
			GuestPlatform:  goPlatformOrNil(h.guest_platform),
		}
	})
}

func goRuntimesReport(r *C.waybill_runtimes_report) RuntimesReport {
	return RuntimesReport{
		Added:            goStrings(r.added),
		Vanished:         goStrings(r.vanished),
		Changed:          goStrings(r.changed),
		RecordsToVerify:  uint64(r.records_to_verify),
		TurnedOn:         bool(r.turned_on),
		RecordsCollapsed: uint64(r.records_collapsed),
		IntentsCollapsed: uint64(r.intents_collapsed),
	}
}
