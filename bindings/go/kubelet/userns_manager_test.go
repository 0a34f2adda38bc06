package kubelet

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"github.com/go-logr/logr"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/version"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	featuregatetesting "k8s.io/component-base/featuregate/testing"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/pkg/features"
	kubecontainer "k8s.io/kubernetes/pkg/kubelet/container"
	"k8s.io/kubernetes/pkg/kubelet/userns"
	"waybill.dev/go"
	"waybill.dev/go/store"
)

// nodePods is what a kubelet knows about user namespaces.
type nodePods struct {
	directory string
	first     uint32
	count     uint32
	maxPods   int
}

func (p *nodePods) HandlerSupportsUserNamespaces(handler string) (bool, error) {
	switch handler {
	case "", "modern":
		return true, nil
	case "old":
		return false, nil
	default:
		return false, fmt.Errorf("the handler %q is not known", handler)
	}
}

func (p *nodePods) GetPodDir(podUID types.UID) string {
	return filepath.Join(p.directory, string(podUID))
}

func (p *nodePods) ListPodsFromDisk() ([]types.UID, error) {
	entries, err := os.ReadDir(p.directory)
	var uids []types.UID
	for _, entry := range entries {
		uids = append(uids, types.UID(entry.Name()))
	}
	return uids, err
}

func (p *nodePods) GetKubeletMappings(klog.Logger, uint32) (uint32, uint32, error) {
	return p.first, p.count, nil
}

func (p *nodePods) GetMaxPods() int { return p.maxPods }

func podUID(i int) types.UID {
	return types.UID(fmt.Sprintf("%08d-2222-4000-8000-000000000000", i))
}

func podWith(uid types.UID, hostUsers *bool) *v1.Pod {
	return &v1.Pod{ObjectMeta: metav1.ObjectMeta{UID: uid}, Spec: v1.PodSpec{HostUsers: hostUsers}}
}

// usernsHistory plays the same steps on the kubelet's manager and on ours.
type usernsHistory struct {
	r         *rand.Rand
	pods      *nodePods
	storePath string
	idsPerPod int64
	store     *store.Store
	managers  [2]UserNamespaceManager // the kubelet's, ours
	mappings  [2]map[types.UID]*runtimeapi.UserNamespace
	touched   map[types.UID]bool // got their mapping since the latest cleanup
}

func (h *usernsHistory) restart() error {
	kubelets, err := userns.MakeUserNsManager(logr.Discard(), h.pods, &h.idsPerPod)
	if err != nil {
		return err
	}
	if h.store != nil {
		if err := h.store.Close(); err != nil {
			return err
		}
	}
	options := store.Options{Directory: h.storePath, LossMarker: store.NoLossMarker, Settings: waybill.Settings{MapBytes: 64 << 20}}
	if options.Settings.Pool, err = UserNamespacesOf(logr.Discard(), h.pods, &h.idsPerPod); err != nil {
		return err
	}
	if h.store, err = store.Open(options); err != nil {
		return err
	}
	ours, err := MakeUsernsManager(logr.Discard(), h.store, h.pods)
	h.managers = [2]UserNamespaceManager{kubelets, ours}
	return err
}

func (h *usernsHistory) uid() types.UID {
	return podUID(h.r.IntN(12))
}

func (h *usernsHistory) get() error {
	pod := podWith(h.uid(), []*bool{nil, new(bool), new(bool), new(bool), new(bool), new(bool)}[h.r.IntN(6)])
	if pod.Spec.HostUsers != nil {
		*pod.Spec.HostUsers = h.r.IntN(8) == 0
	}
	handler := []string{"", "", "", "modern", "modern", "old", "absent"}[h.r.IntN(7)]
	var given [2]*runtimeapi.UserNamespace
	var failures [2]error
	for i, manager := range h.managers {
		given[i], failures[i] = manager.GetOrCreateUserNamespaceMappings(logr.Discard(), pod, handler)
	}
	if (failures[0] == nil) != (failures[1] == nil) {
		return fmt.Errorf("pod %s, handler %q: kubelet %v, waybill %v", pod.UID, handler, failures[0], failures[1])
	}
	if failures[0] != nil {
		full := len(h.mappings[0]) >= h.pods.maxPods && (handler == "" || handler == "modern")
		if !full && failures[0].Error() != failures[1].Error() {
			return fmt.Errorf("pod %s, handler %q: kubelet says %q, waybill %q", pod.UID, handler, failures[0], failures[1])
		}
		return nil
	}
	if given[0].Mode != given[1].Mode {
		return fmt.Errorf("pod %s: kubelet %v, waybill %v", pod.UID, given[0], given[1])
	}
	if given[0].Mode == runtimeapi.NamespaceMode_NODE {
		if len(given[1].Uids)+len(given[1].Gids) != 0 {
			return fmt.Errorf("pod %s of the host's namespace: %v", pod.UID, given[1])
		}
		return nil
	}
	h.touched[pod.UID] = true
	for i, mapping := range given {
		if err := h.check(i, pod.UID, mapping); err != nil {
			return err
		}
	}
	return nil
}

func (h *usernsHistory) check(i int, uid types.UID, mapping *runtimeapi.UserNamespace) error {
	if before, ok := h.mappings[i][uid]; ok {
		if before.String() != mapping.String() {
			return fmt.Errorf("pod %s had %v and has %v now", uid, before, mapping)
		}
		return nil
	}
	if len(mapping.Uids) != 1 || len(mapping.Gids) != 1 || mapping.Uids[0].String() != mapping.Gids[0].String() {
		return fmt.Errorf("pod %s: %v", uid, mapping)
	}
	given := mapping.Uids[0]
	first, end := uint64(given.HostId), uint64(given.HostId)+uint64(given.Length)
	if given.ContainerId != 0 || int64(given.Length) != h.idsPerPod || given.HostId%given.Length != 0 ||
		first < uint64(h.pods.first) || end > uint64(h.pods.first)+uint64(h.pods.count) {
		return fmt.Errorf("pod %s: %v of a pool from %d on, %d IDs", uid, mapping, h.pods.first, h.pods.count)
	}
	for other, taken := range h.mappings[i] {
		if from := uint64(taken.Uids[0].HostId); first < from+uint64(taken.Uids[0].Length) && from < end {
			return fmt.Errorf("pods %s and %s share host IDs: %v, %v", uid, other, mapping, taken)
		}
	}
	h.mappings[i][uid] = mapping
	return nil
}

func (h *usernsHistory) forget(uid types.UID) {
	delete(h.mappings[0], uid)
	delete(h.mappings[1], uid)
}

// cleanUp lists every pod that is newer than the previous cleanup: the managers treat a newer pod that
// is not listed differently.
func (h *usernsHistory) cleanUp() error {
	var pods []*v1.Pod
	var running []*kubecontainer.Pod
	var gone []types.UID
	for i := range 12 {
		uid := podUID(i)
		in := h.r.IntN(4)
		if h.touched[uid] {
			in = 1 + h.r.IntN(3)
		}
		if in&1 != 0 {
			pods = append(pods, podWith(uid, nil))
		}
		if in&2 != 0 {
			running = append(running, &kubecontainer.Pod{ID: uid})
		}
		if in == 0 {
			gone = append(gone, uid)
		}
	}
	for _, manager := range h.managers {
		if err := manager.CleanupOrphanedPodUsernsAllocations(quiet, pods, running); err != nil {
			return err
		}
	}
	for _, uid := range gone {
		h.forget(uid)
	}
	h.touched = map[types.UID]bool{}
	return nil
}

func (h *usernsHistory) play(steps int) error {
	for i := range steps {
		var err error
		switch n := h.r.IntN(100); {
		case n < 70:
			err = h.get()
		case n < 85:
			uid := h.uid()
			for _, manager := range h.managers {
				manager.Release(logr.Discard(), uid)
			}
			h.forget(uid)
			delete(h.touched, uid)
		case n < 95:
			err = h.cleanUp()
		default:
			err = h.restart()
		}
		if err != nil {
			return fmt.Errorf("step %d: %w", i, err)
		}
		// The same pods have a mapping in both, and the same pods have none.
		listed, err := h.store.ListUserNamespaces(quiet, waybill.ListUserNamespaces{})
		if err != nil {
			return err
		}
		if len(listed.Mappings) != len(h.mappings[1]) || len(h.mappings[0]) != len(h.mappings[1]) {
			return fmt.Errorf("step %d: %d mappings are stored, %d known, %d of the kubelet's", i,
				len(listed.Mappings), len(h.mappings[1]), len(h.mappings[0]))
		}
	}
	return h.store.Close()
}

func TestUserNamespacesAgreeWithTheKubelet(t *testing.T) {
	seed, histories := numberFromEnv(t, "WAYBILL_SEED", rand.Uint64()>>16), uint64(20)
	if os.Getenv("WAYBILL_SEED") != "" {
		histories = 1
	}
	t.Logf("WAYBILL_SEED=%d", seed)
	for i := range histories {
		directory := scratchDir(t)
		r := rand.New(rand.NewPCG(seed+i, 0))
		length := int64(65536 * (1 + r.IntN(2)))
		history := &usernsHistory{
			r: r, storePath: filepath.Join(directory, "store"), idsPerPod: length, touched: map[types.UID]bool{},
			pods:     &nodePods{directory: filepath.Join(directory, "pods"), first: uint32(length), count: 8 * uint32(length), maxPods: 8},
			mappings: [2]map[types.UID]*runtimeapi.UserNamespace{{}, {}},
		}
		must(t, os.Mkdir(history.pods.directory, 0o700))
		err := history.restart()
		if err == nil {
			err = history.play(150)
		}
		if err != nil {
			t.Fatalf("WAYBILL_SEED=%d: %v", seed+i, err)
		}
	}
}

func TestIDsPerPodThatAreNone(t *testing.T) {
	for _, idsPerPod := range []int64{0, -65536, 1<<32 + 65536} {
		if pool, err := UserNamespacesOf(logr.Discard(), &nodePods{first: 65536, count: 8 * 65536, maxPods: 8}, &idsPerPod); err == nil {
			t.Errorf("%d IDs a pod: %+v", idsPerPod, pool)
		}
	}
}

func openUserns(t *testing.T) (*store.Store, *nodePods, *UsernsManager) {
	t.Helper()
	pods := &nodePods{first: 65536, count: 8 * 65536, maxPods: 8}
	userNamespaces, err := UserNamespacesOf(logr.Discard(), pods, nil)
	must(t, err)
	store := openTestStore(t, store.Options{Settings: waybill.Settings{Pool: userNamespaces}})
	manager, err := MakeUsernsManager(logr.Discard(), store, pods)
	must(t, err)
	return store, pods, manager
}

func hasRange(t *testing.T, store *store.Store, podUID string) bool {
	t.Helper()
	listed, err := store.ListUserNamespaces(quiet, waybill.ListUserNamespaces{PodUID: podUID})
	must(t, err)
	return len(listed.Mappings) > 0
}

func TestCleanupKeepsPodsNewerThanItsLists(t *testing.T) {
	store, _, manager := openUserns(t)
	for _, uid := range []types.UID{"old", "new"} {
		if uid == "new" { // the lists are older than this pod
			must(t, manager.CleanupOrphanedPodUsernsAllocations(quiet, []*v1.Pod{podWith("old", nil)}, nil))
		}
		if _, err := manager.GetOrCreateUserNamespaceMappings(logr.Discard(), podWith(uid, new(bool)), ""); err != nil {
			t.Fatal(err)
		}
	}
	must(t, manager.CleanupOrphanedPodUsernsAllocations(quiet, nil, nil))
	if !hasRange(t, store, "new") {
		t.Error("the newer pod has none")
	}
	if hasRange(t, store, "old") {
		t.Error("the older pod has one")
	}
	must(t, manager.CleanupOrphanedPodUsernsAllocations(quiet, nil, nil))
	if hasRange(t, store, "new") {
		t.Error("the newer pod has one after the next cleanup")
	}
}

func TestUserNamespacesWithTheFeatureOff(t *testing.T) {
	store, pods, manager := openUserns(t)
	if _, err := manager.GetOrCreateUserNamespaceMappings(logr.Discard(), podWith("pod", new(bool)), ""); err != nil {
		t.Fatal(err)
	}
	featuregatetesting.SetFeatureGateEmulationVersionDuringTest(t, utilfeature.DefaultFeatureGate, version.MustParse("1.35"))
	featuregatetesting.SetFeatureGateDuringTest(t, utilfeature.DefaultFeatureGate, features.UserNamespacesSupport, false)
	var kubelets *userns.UsernsManager // what the kubelet then has
	hostUsers := true
	for _, pod := range []*v1.Pod{nil, podWith("pod", nil), podWith("pod", &hostUsers), podWith("pod", new(bool))} {
		want, wantErr := kubelets.GetOrCreateUserNamespaceMappings(logr.Discard(), pod, "")
		got, err := manager.GetOrCreateUserNamespaceMappings(logr.Discard(), pod, "")
		if got != want || fmt.Sprint(err) != fmt.Sprint(wantErr) {
			t.Errorf("kubelet: %v, %v; waybill: %v, %v", want, wantErr, got, err)
		}
	}
	manager.Release(logr.Discard(), "pod")
	if err := manager.CleanupOrphanedPodUsernsAllocations(quiet, nil, nil); err != nil {
		t.Error(err)
	}
	if !hasRange(t, store, "pod") {
		t.Error("the mapping of before is gone")
	}
	if pool, err := UserNamespacesOf(logr.Discard(), pods, nil); err != nil || pool.Enabled == nil || *pool.Enabled {
		t.Errorf("UserNamespacesOf: %+v, %v", pool, err)
	}
}

func TestUsernsManagerWrongUse(t *testing.T) {
	if _, err := MakeUsernsManager(logr.Discard(), nil, &nodePods{}); err == nil {
		t.Error("a nil store was taken")
	}
	store, pods, manager := openUserns(t)
	if _, err := MakeUsernsManager(logr.Discard(), store, nil); err == nil {
		t.Error("nil pods were taken")
	}
	if _, err := manager.GetOrCreateUserNamespaceMappings(logr.Discard(), podWith("../etc", new(bool)), ""); !errors.Is(err, waybill.ErrInvalidArgument) {
		t.Errorf("a pod UID that is a path: %v", err)
	}
	must(t, store.Close())
	if _, err := MakeUsernsManager(logr.Discard(), store, pods); !errors.Is(err, waybill.ErrClosed) {
		t.Errorf("a closed store: %v", err)
	}
	if _, err := manager.GetOrCreateUserNamespaceMappings(logr.Discard(), podWith("pod", new(bool)), ""); !errors.Is(err, waybill.ErrClosed) {
		t.Errorf("after closing: %v", err)
	}
	manager.Release(logr.Discard(), "pod")
	if err := manager.CleanupOrphanedPodUsernsAllocations(quiet, nil, nil); !errors.Is(err, waybill.ErrClosed) {
		t.Errorf("cleanup after closing: %v", err)
	}
}
