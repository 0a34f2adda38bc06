package waybill

// #include "shim.h"
import "C"

import "time"

// IDMapping is CRI's IDMapping.
type IDMapping struct {
	HostID, ContainerID, Length uint32
}

// NamespaceMode is CRI's NamespaceMode, with its numbers: the modes of user namespaces.
type NamespaceMode int32

const (
	ModePod  NamespaceMode = C.WAYBILL_NAMESPACE_POD
	ModeNode NamespaceMode = C.WAYBILL_NAMESPACE_NODE
)

// String returns CRI's name, "POD" or "NODE".
func (m NamespaceMode) String() string { return word(int64(m), "NamespaceMode", "POD", "", "NODE") }

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
	RuntimeHandler string // that the pod's RuntimeClass names; empty: the default one
	// The length that the caller requires; nil: any.
	Length *uint32
}

// PoolRelation says how a pod's range relates to the current pool.
type PoolRelation int32

const (
	PoolInside PoolRelation = C.WAYBILL_POOL_INSIDE
	// PoolOutside: part or all of it lies outside.
	PoolOutside PoolRelation = C.WAYBILL_POOL_OUTSIDE
	// PoolOtherLength: its length is not the pool's IDsPerPod.
	PoolOtherLength PoolRelation = C.WAYBILL_POOL_OTHER_LENGTH
)

// String returns "inPool", "outsidePool" or "otherLength".
func (r PoolRelation) String() string {
	return word(int64(r), "PoolRelation", "inPool", "outsidePool", "otherLength")
}

// UserNamespaceAllocation is a pod's ID mapping. Whatever its relation to the current pool, it stays
// valid for its pod, blocks the ranges that it overlaps, and disappears when it is released.
type UserNamespaceAllocation struct {
	PodUID         string
	HostID, Length uint32
	Created        time.Time
	Relation       PoolRelation
}

// HostIDRange is a range of host IDs.
type HostIDRange struct {
	First, Length uint64
}

// HeldKind says why a pod is held. Treat an unknown number like any other kind.
type HeldKind int32

// The kinds of [HeldPod].
const (
	HeldOther            HeldKind = C.WAYBILL_HELD_OTHER
	HeldFileConflict     HeldKind = C.WAYBILL_HELD_FILE_CONFLICT     // its file contradicts another file, or the store
	HeldTablesContradict HeldKind = C.WAYBILL_HELD_TABLES_CONTRADICT // the store's tables contradict each other
	HeldUnreadableFile   HeldKind = C.WAYBILL_HELD_UNREADABLE_FILE   // its file is unreadable, or kubelets refuse it
	HeldFromBackup       HeldKind = C.WAYBILL_HELD_FROM_BACKUP       // its range may belong to another pod by now
	HeldLostRanges       HeldKind = C.WAYBILL_HELD_LOST_RANGES       // without a UID: ranges were lost
	HeldUntilImport      HeldKind = C.WAYBILL_HELD_UNTIL_IMPORT      // without a UID: until the pods' files are imported
)

// HeldPod is a pod that may live with unverified host IDs: its file was broken, or its range overlaps
// another one or was lost. It gets no mapping, and its ranges are not handed out.
type HeldPod struct {
	PodUID string // empty: ranges of unknown pods were lost
	// Empty: unknown, so no new range can be handed out.
	Ranges []HostIDRange
	Source string // the file, below the kubelet directory; may be empty
	Reason string
	Since  time.Time
	Kind   HeldKind
}

// UserNamespaceCleanupReport says what a cleanup did.
type UserNamespaceCleanupReport struct {
	Examined     uint64 // pods
	Released     uint64
	KeptInLists  uint64
	KeptNewer    uint64   // written after the token was drawn
	ReleasedPods []string // their UIDs, the first 1000
}

// UserNamespaceStatistics counts in ranges of the pool's IDsPerPod.
type UserNamespaceStatistics struct {
	Enabled        bool
	Pool           UserNamespacePool
	Ranges         uint64 // all but the reserved ones
	Used           uint64 // of those: taken, or overlapped by a taken range
	Free           uint64
	LargestFreeRun uint64 // adjacent free ranges
	Allocations    uint64
	OutsidePool    uint64 // of the allocations
	OtherLength    uint64 // of the allocations
	HeldPods       uint64
	// Why no new range can be handed out: a pod with an unknown range is held. Empty: none is.
	RefusedBecause string
}

// GetOrCreateUserNamespace returns the user namespace for the pod's sandbox and mounts (KEP-127).
// HostUsers nil or true: ModeNode, and nothing is stored. False: the pod's mapping, always the same,
// on disk before it is returned. An observer answers for pods that have a mapping; others are
// ErrNotOwner. The errors, in this order, the first two and the last in the kubelet's words:
//
//	ErrConflict         HostUsers is set, and user namespaces are switched off
//	ErrInvalidArgument  the runtime handler does not support user namespaces, or is not in the registry
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
		namespace.UIDs = []IDMapping{goIDMapping(c.uids)}
		namespace.GIDs = []IDMapping{goIDMapping(c.gids)}
	}
	return namespace, nil
}

func goIDMapping(m C.waybill_id_mapping) IDMapping {
	return IDMapping{HostID: uint32(m.host_id), ContainerID: uint32(m.container_id), Length: uint32(m.length)}
}

// GetUserNamespace returns a pod's mapping. ErrNotFound: the pod certainly has no mapping. ErrConflict:
// the pod is held. ErrInvalidArgument: not a UID. ErrDamaged as of [Store.GetRecord].
func (s *Store) GetUserNamespace(podUID string) (UserNamespaceAllocation, error) {
	var allocation *C.waybill_user_namespace_allocation
	err := s.call(func(h handle, e errorOut) C.waybill_code {
		return C.waybill_get_user_namespace(h, borrow(podUID), &allocation, e)
	})
	return take(allocation, goAllocation), err
}

// ReleaseUserNamespace releases the mapping of a pod that is gone, and ends its being held. It returns
// whether the pod had a mapping or was held. Errors as of [Store.RecordPullIntent].
func (s *Store) ReleaseUserNamespace(podUID string, options ...ChangeOption) (bool, error) {
	var a arena
	defer a.free()
	how := cChangeOptions(&a, options)
	var released C.bool
	err := s.call(func(h handle, e errorOut) C.waybill_code {
		return C.waybill_release_user_namespace(h, borrow(podUID), how, &released, e)
	})
	return bool(released), err
}

// ListUserNamespaces returns every mapping, sorted by host ID. ErrDamaged as of [Store.GetRecord].
func (s *Store) ListUserNamespaces() ([]UserNamespaceAllocation, error) {
	var list *C.waybill_user_namespace_allocations
	err := s.call(func(h handle, e errorOut) C.waybill_code { return C.waybill_list_user_namespaces(h, &list, e) })
	return take(list, func(l *C.waybill_user_namespace_allocations) []UserNamespaceAllocation {
		return goList(l.items, l.count, goAllocation)
	}), err
}

// ListHeldPods returns every held pod, sorted by UID. ErrDamaged as of [Store.GetRecord].
func (s *Store) ListHeldPods() ([]HeldPod, error) {
	var pods *C.waybill_held_pods
	err := s.call(func(h handle, e errorOut) C.waybill_code { return C.waybill_list_held_pods(h, &pods, e) })
	return take(pods, func(p *C.waybill_held_pods) []HeldPod {
		return goList(p.items, p.count, func(p *C.waybill_held_pod) HeldPod {
			return HeldPod{
				PodUID: goString(p.pod_uid),
				Ranges: goList(p.ranges, p.range_count, func(r *C.waybill_host_id_range) HostIDRange {
					return HostIDRange{First: uint64(r.first), Length: uint64(r.length)}
				}),
				Source: goString(p.source),
				Reason: goString(p.reason),
				Since:  goTime(p.since),
				Kind:   HeldKind(p.kind),
			}
		})
	}), err
}

// CleanUpUserNamespaces releases, in one transaction, the mappings of pods in neither list: existing
// are the pods that the node should run, running those that the runtime runs. Both are complete lists
// of UIDs, made in this order after token was drawn ([Store.BeginList]): a mapping that was handed
// out since then stays. ErrInvalidArgument: the token is from the future or of another store, or both lists are empty but
// pods have mappings or are held ([AllowEmpty]: a drained node has no pods). Further errors as of
// [Store.RecordPullIntent].
func (s *Store) CleanUpUserNamespaces(existing, running []string, token ListToken, options ...ChangeOption) (UserNamespaceCleanupReport, error) {
	var a arena
	defer a.free()
	cExisting, cRunning := a.strings(existing), a.strings(running)
	how := cChangeOptions(&a, options)
	var report *C.waybill_user_namespace_cleanup_report
	err := s.call(func(h handle, e errorOut) C.waybill_code {
		return C.waybill_clean_up_user_namespaces(h, cExisting, cRunning, cToken(token), how, &report, e)
	})
	return take(report, func(r *C.waybill_user_namespace_cleanup_report) UserNamespaceCleanupReport {
		return UserNamespaceCleanupReport{
			Examined:     uint64(r.examined),
			Released:     uint64(r.released),
			KeptInLists:  uint64(r.kept_in_lists),
			KeptNewer:    uint64(r.kept_newer),
			ReleasedPods: goStrings(r.released_pods),
		}
	}), err
}

// AdoptUserNamespace records an operator's confirmation that the pod lives with this range, whose
// file was unreadable; the pod is then no longer held. ErrInvalidArgument: hostID and length must be
// multiples of 65,536, hostID also of length; the range must not contain the host's block or 2³²−1.
// ErrConflict: another pod has or may have some of it, or the pod has another mapping and is not held.
// Further errors as of [Store.RecordPullIntent].
func (s *Store) AdoptUserNamespace(podUID string, hostID, length uint64) error {
	return s.call(func(h handle, e errorOut) C.waybill_code {
		return C.waybill_adopt_user_namespace(h, borrow(podUID), C.uint64_t(hostID), C.uint64_t(length), e)
	})
}

// ReleaseLostUserNamespaces records an operator's confirmation that every live pod in a user
// namespace is listed: lost ranges (a HeldPod without a UID) no longer block new ones. It returns
// whether they did. Errors as of [Store.RecordPullIntent].
func (s *Store) ReleaseLostUserNamespaces(options ...ChangeOption) (bool, error) {
	var a arena
	defer a.free()
	how := cChangeOptions(&a, options)
	var released C.bool
	err := s.call(func(h handle, e errorOut) C.waybill_code {
		return C.waybill_release_lost_user_namespaces(h, how, &released, e)
	})
	return bool(released), err
}

// GetUserNamespaceStatistics counts ranges and pods. ErrDamaged as of [Store.GetRecord].
func (s *Store) GetUserNamespaceStatistics() (UserNamespaceStatistics, error) {
	var statistics *C.waybill_user_namespace_statistics
	err := s.call(func(h handle, e errorOut) C.waybill_code {
		return C.waybill_get_user_namespace_statistics(h, &statistics, e)
	})
	return take(statistics, func(u *C.waybill_user_namespace_statistics) UserNamespaceStatistics {
		return UserNamespaceStatistics{
			Enabled:        bool(u.enabled),
			Pool:           goPool(u.pool),
			Ranges:         uint64(u.ranges),
			Used:           uint64(u.used),
			Free:           uint64(u.free),
			LargestFreeRun: uint64(u.largest_free_run),
			Allocations:    uint64(u.allocations),
			OutsidePool:    uint64(u.outside_pool),
			OtherLength:    uint64(u.other_length),
			HeldPods:       uint64(u.held_pods),
			RefusedBecause: goString(u.refused_because),
		}
	}), err
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
