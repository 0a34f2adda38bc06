package waybill

// #include "shim.h"
import "C"

import "unsafe"

// UserNamespaceOptions configure ID ranges for pods.
type UserNamespaceOptions struct {
	// The feature UserNamespacesSupport is off: no new mappings, and Pool is ignored; releasing, listing
	// and cleaning up still work.
	Disabled bool
	// The zero pool is DefaultUserNamespacePool(65536, 110).
	Pool UserNamespacePool
}

// DefaultUserNamespacePool is what a kubelet without configuration uses: idsPerPod to 2^32, cut to
// whole ranges. A kubelet's own defaults are 65,536 and 110.
func DefaultUserNamespacePool(idsPerPod, maxPods uint64) UserNamespacePool {
	pool := C.waybill_default_user_namespace_pool(C.uint64_t(idsPerPod), C.uint64_t(maxPods))
	return goUserNamespacePool(&pool)
}

// Check says what is wrong with the pool, in the kubelet's words: ErrInvalidArgument.
func (p UserNamespacePool) Check() error {
	pool := cUserNamespacePool(nil, &p)
	var e *C.waybill_error
	return takeError(C.waybill_check_user_namespace_pool(&pool, &e), e)
}

// SubordinateIDs is what the node says about the user `kubelet`.
type SubordinateIDs struct {
	UserExists bool
	ToolExists bool   // getsubids is installed
	UIDs       string // the output of `getsubids kubelet`, unchanged
	GIDs       string // the output of `getsubids -g kubelet`
}

// PoolOfSubordinateIDs is the pool that a node is configured for. Without the user or without the
// tool it is the default one. Otherwise both outputs must be the same single line, "0: kubelet FIRST
// COUNT". ErrInvalidArgument, in the kubelet's words: they are not, or the pool is invalid.
func PoolOfSubordinateIDs(found SubordinateIDs, idsPerPod, maxPods uint64) (UserNamespacePool, error) {
	var pool C.waybill_user_namespace_pool
	var e *C.waybill_error
	code := C.waybill_pool_of_subordinate_ids(C.bool(found.UserExists), C.bool(found.ToolExists),
		borrow(found.UIDs), borrow(found.GIDs), C.uint64_t(idsPerPod), C.uint64_t(maxPods), &pool, &e)
	if err := takeError(code, e); err != nil {
		return UserNamespacePool{}, err
	}
	return goUserNamespacePool(&pool), nil
}

func cUserNamespaceOptions(a *arena, o *UserNamespaceOptions) *C.waybill_user_namespace_options {
	if o == nil {
		return nil
	}
	out := one[C.waybill_user_namespace_options](a)
	out.struct_size = C.size_t(unsafe.Sizeof(*out))
	out.disabled = C.bool(o.Disabled)
	out.pool = cUserNamespacePool(a, &o.Pool) // all zero: the default one
	return out
}
