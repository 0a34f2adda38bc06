package waybill_test

import (
	"fmt"
	"reflect"
	"testing"

	"waybill.dev/go"
)

func withHandlers(t *testing.T) (*waybill.Store, waybill.Options) {
	o := optionsIn(scratch(t))
	o.RuntimeHandlers = []waybill.RuntimeHandler{{Name: "runc", IsDefault: true, UserNamespaces: true}, {Name: "kata"}}
	return open(t, o), o
}

func TestUserNamespaces(t *testing.T) {
	s, _ := withHandlers(t)
	yes, no := true, false
	for _, hostUsers := range []*bool{nil, &yes} {
		got, err := s.GetOrCreateUserNamespace(waybill.UserNamespaceRequest{PodUID: podUID, HostUsers: hostUsers})
		want := (waybill.UserNamespace{Mode: waybill.ModeNode})
		errorIf(t, err != nil || !reflect.DeepEqual(got, want), "%+v, %v", got, err)
	}
	request := waybill.UserNamespaceRequest{PodUID: podUID, HostUsers: &no}
	got := value(s.GetOrCreateUserNamespace(request))
	errorIf(t, len(got.UIDs) != 1 || got.UIDs[0].Length != 65536 || got.UIDs[0].HostID < 65536 || !reflect.DeepEqual(got.UIDs, got.GIDs) || got.Mode != waybill.ModePod, "%+v", got)
	again, err := s.GetOrCreateUserNamespace(request)
	errorIf(t, err != nil || !reflect.DeepEqual(again, got), "the second time: %+v, %v", again, err)
	allocation, err := s.GetUserNamespace(podUID)
	errorIf(t, err != nil || allocation.PodUID != podUID || allocation.HostID != got.UIDs[0].HostID || allocation.Relation != waybill.PoolInside || allocation.Created.IsZero(), "%+v, %v", allocation, err)
	list, err := s.ListUserNamespaces()
	errorIf(t, err != nil || len(list) != 1 || list[0] != allocation, "%+v, %v", list, err)

	other, zero := uint32(131072), uint32(0)
	for what, c := range map[string]struct {
		request waybill.UserNamespaceRequest
		want    error
	}{
		"handler":  {waybill.UserNamespaceRequest{PodUID: "a", HostUsers: &no, RuntimeHandler: "kata"}, waybill.ErrInvalidArgument},
		"length":   {waybill.UserNamespaceRequest{PodUID: podUID, HostUsers: &no, Length: &other}, waybill.ErrConflict},
		"length 0": {waybill.UserNamespaceRequest{PodUID: podUID, HostUsers: &no, Length: &zero}, waybill.ErrInvalidArgument},
	} {
		got, err := s.GetOrCreateUserNamespace(c.request)
		errorIf(t, !isCode(err, c.want) || len(got.UIDs) != 0, "%s: %+v, %v", what, got, err)
	}

	statistics, err := s.GetUserNamespaceStatistics()
	errorIf(t, err != nil || !statistics.Enabled || statistics.Allocations != 1 || statistics.Used != 1 || statistics.Pool != waybill.DefaultUserNamespacePool(65536, 110), "%+v, %v", statistics, err)
	released, err := s.ReleaseUserNamespace(podUID)
	errorIf(t, !released || err != nil, "%v, %v", released, err)
	wantCode(t, second(s.GetUserNamespace(podUID)), waybill.ErrNotFound)
}

func isCode(err, sentinel error) bool { e, ok := err.(*waybill.Error); return ok && e.Is(sentinel) }

func TestUserNamespaceCleanup(t *testing.T) {
	s, o := withHandlers(t)
	no := false
	for i := range 4 {
		value(s.GetOrCreateUserNamespace(waybill.UserNamespaceRequest{PodUID: fmt.Sprint("pod-", i), HostUsers: &no}))
	}
	token := value(s.BeginList())
	value(s.GetOrCreateUserNamespace(waybill.UserNamespaceRequest{PodUID: "pod-3", HostUsers: &no}))
	wantCode(t, second(s.CleanUpUserNamespaces(nil, nil, token)), waybill.ErrInvalidArgument)
	dry, err := s.CleanUpUserNamespaces(nil, nil, token, waybill.AllowEmpty, waybill.DryRun)
	errorIf(t, err != nil || dry.Released != 3, "%+v, %v", dry, err)
	report, err := s.CleanUpUserNamespaces([]string{"pod-0"}, []string{"pod-1"}, token)
	want := waybill.UserNamespaceCleanupReport{Examined: 4, Released: 1, KeptInLists: 2, KeptNewer: 1, ReleasedPods: []string{"pod-2"}}
	errorIf(t, err != nil || !reflect.DeepEqual(report, want), "%+v, %v", report, err)
	must(t, s.AdoptUserNamespace("pod-9", 65536*1000, 65536))
	wantCode(t, s.AdoptUserNamespace("pod-8", 65536*1000, 65536), waybill.ErrConflict)
	lost, err := s.ReleaseLostUserNamespaces()
	errorIf(t, lost || err != nil, "%v, %v", lost, err)
	held, err := s.ListHeldPods()
	errorIf(t, len(held) != 0 || err != nil, "%+v, %v", held, err)
	must(t, s.Close())
	o.UserNamespaces = &waybill.UserNamespaceOptions{Pool: waybill.UserNamespacePool{FirstID: 65536 * 10, IDCount: 65536 * 10, IDsPerPod: 65536, MaxPods: 10}}
	u := open(t, o).RecoveryReport().UserNamespaces
	errorIf(t, u.Unchanged != 0 || u.OutsidePool != 4 || len(u.OffPool) != 4, "%+v", u)
}

func TestPools(t *testing.T) {
	pool := waybill.DefaultUserNamespacePool(65536, 110)
	err := pool.Check()
	errorIf(t, err != nil || pool.FirstID != 65536 || pool.MaxPods != 110, "%+v, %v", pool, err)
	wantCode(t, waybill.UserNamespacePool{FirstID: 1}.Check(), waybill.ErrInvalidArgument)
	found := waybill.SubordinateIDs{UserExists: true, ToolExists: true, UIDs: "0: kubelet 65536 7208960\n", GIDs: "0: kubelet 65536 7208960\n"}
	pool, err = waybill.PoolOfSubordinateIDs(found, 65536, 110)
	errorIf(t, err != nil || pool.FirstID != 65536 || pool.IDCount != 7208960, "%+v, %v", pool, err)

	o := optionsIn(scratch(t))
	o.UserNamespaces = &waybill.UserNamespaceOptions{Disabled: true}
	s := open(t, o)
	no := false
	wantCode(t, second(s.GetOrCreateUserNamespace(waybill.UserNamespaceRequest{PodUID: podUID, HostUsers: &no})), waybill.ErrConflict)
}
