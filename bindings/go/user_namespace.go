package waybill

// #include "shim.h"
import "C"

// UserNamespace is CRI's UserNamespace. With ModePod, UIDs and GIDs are the same single mapping from
// container ID 0, also for uid_mappings and gid_mappings of the pod's mounts. With ModeNode both are
// empty.
type UserNamespace struct {
	Mode       NamespaceMode
	UIDs, GIDs []IDMapping
}

// UserNamespaceRequest is what a pod wants.
type UserNamespaceRequest struct {
	// 1 to 253 bytes above 0x20, neither "." nor "..", without '/'.
	PodUID         string
	HostUsers      *bool  // pod.spec.hostUsers
	RuntimeHandler string // of the pod's RuntimeClass; empty: the default one
	// The length that the caller requires; nil: any.
	Length *uint32
}

// GetOrCreateUserNamespace returns the user namespace for the pod's sandbox and mounts (KEP-127).
// HostUsers nil or true: ModeNode, and nothing is stored. False: the pod's mapping, always the same,
// on disk before it is returned. An observer answers for pods that have a mapping; others are
// ErrNotOwner. The errors, in this order, the first two and the last in the kubelet's words:
//
//	ErrConflict         HostUsers is set, and user namespaces are switched off
//	ErrInvalidArgument  the runtime handler does not support user namespaces, or is not in the registry;
//	                    or no registry was ever loaded
//	ErrConflict         the pod is held, or its mapping has another length than r.Length
//	ErrInvalidArgument  the pod has no mapping, and r.Length is not the pool's length
//	ErrConflict         a pod with an unknown range is held, so no new range is handed out
//	ErrLimitExceeded    the pool is full
//
// ErrInvalidArgument also for a PodUID that can't be a pod's. After these errors nothing was changed.
// Further errors as of [Store.RecordPullIntent].
func (s *Store) GetOrCreateUserNamespace(r UserNamespaceRequest) (UserNamespace, error) {
	hostUsers := C.int32_t(C.WAYBILL_HOST_USERS_UNSET)
	if r.HostUsers != nil {
		hostUsers = C.WAYBILL_HOST_USERS_FALSE
		if *r.HostUsers {
			hostUsers = C.WAYBILL_HOST_USERS_TRUE
		}
	}
	length := C.uint32_t(0)
	if r.Length != nil {
		if *r.Length == 0 {
			return UserNamespace{Mode: ModeNode}, &Error{
				Code:    CodeInvalidArgument,
				Message: "a user namespace of length 0 was asked for; nothing was changed",
				Hint:    "leave the length out to take the one that the pool has",
			}
		}
		length = C.uint32_t(*r.Length)
	}
	var c C.waybill_user_namespace
	err := s.call(func(h handle, e errorOut) C.waybill_code {
		return C.waybill_go_user_namespace(h, borrow(r.PodUID), hostUsers, borrow(r.RuntimeHandler),
			length, &c, e)
	})
	if err != nil {
		return UserNamespace{Mode: ModeNode}, err
	}
	namespace := UserNamespace{Mode: NamespaceMode(c.mode)}
	if c.mapping_count > 0 {
		namespace.UIDs = []IDMapping{goIDMapping(&c.uids)}
		namespace.GIDs = []IDMapping{goIDMapping(&c.gids)}
	}
	return namespace, nil
}

func goAllocation(u *C.waybill_user_namespace_allocation) UserNamespaceAllocation {
	return UserNamespaceAllocation{
		PodUID:   goString(u.pod_uid),
		HostID:   uint32(u.host_id),
		Length:   uint32(u.length),
		Created:  goTime(u.created),
		Relation: PoolRelation(u.relation),
	}
}
