package kubelet

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"sync"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/pkg/features"
	kubecontainer "k8s.io/kubernetes/pkg/kubelet/container"
	"k8s.io/kubernetes/pkg/kubelet/kubeletconfig"
	"k8s.io/kubernetes/pkg/kubelet/userns"
	"waybill.dev/go"
	"waybill.dev/go/store"
)

// UserNamespaceManager has the methods of userns.UsernsManager that the kubelet calls.
type UserNamespaceManager interface {
	usernsInRelease
	Release(logger klog.Logger, podUID types.UID)
	CleanupOrphanedPodUsernsAllocations(ctx context.Context, pods []*v1.Pod, runningPods []*kubecontainer.Pod) error
}

var (
	_ UserNamespaceManager = (*userns.UsernsManager)(nil)
	_ UserNamespaceManager = (*UsernsManager)(nil)
)

// Pods is what a UsernsManager asks the kubelet; *kubelet.Kubelet implements it.
type Pods interface {
	HandlerSupportsUserNamespaces(runtimeHandler string) (bool, error)
	podsInRelease
	GetMaxPods() int
}

// UserNamespacesOf returns the pool that the kubelet is configured for, to open a store with
// (waybill.Settings.Pool). idsPerPod is userNamespaces.idsPerPod, nil for the default.
func UserNamespacesOf(logger klog.Logger, pods Pods, idsPerPod *int64) (waybill.Pool, error) {
	if !utilfeature.DefaultFeatureGate.Enabled(features.UserNamespacesSupport) {
		return waybill.Pool{Enabled: new(false)}, nil
	}
	length := uint32(kubeletconfig.DefaultKubeletUserNamespacesIDsPerPod)
	if idsPerPod != nil {
		if *idsPerPod <= 0 || *idsPerPod > math.MaxUint32 {
			return waybill.Pool{}, fmt.Errorf("userNamespaces.idsPerPod is %d: a multiple of 65536 below 2^32 is needed", *idsPerPod)
		}
		length = uint32(*idsPerPod)
	}
	first, count, err := kubeletMappings(logger, pods, length)
	if err != nil {
		return waybill.Pool{}, fmt.Errorf("kubelet mappings: %w", err)
	}
	return waybill.Pool{FirstID: int64(first), IDCount: int64(count), IDsPerPod: int64(length), MaxPods: int64(pods.GetMaxPods())}, nil
}

// UsernsManager gives pods their host IDs from a waybill store. It is safe for any number of
// goroutines. With the feature gate UserNamespacesSupport off it does nothing, like the kubelet's.
type UsernsManager struct {
	store *store.Store
	pods  Pods

	mu sync.Mutex // guards token, and the registry of runtime handlers between reading and replacing
	// Drawn when the previous cleanup ended, and so before both lists of the next one: a pod that is
	// newer than the lists keeps its mapping.
	token string
}

// MakeUsernsManager replaces userns.MakeUserNsManager. The store stays the caller's. Open it with the
// pool that UserNamespacesOf returns.
func MakeUsernsManager(logger klog.Logger, store *store.Store, pods Pods) (*UsernsManager, error) {
	if store == nil {
		return nil, errNilStore
	}
	if pods == nil {
		return nil, errors.New("the pods manager is nil")
	}
	list, err := store.BeginList(context.Background())
	if err != nil {
		return nil, fmt.Errorf("read the waybill store: %w", err)
	}
	logger.V(5).Info("User namespace manager on a waybill store")
	return &UsernsManager{store: store, pods: pods, token: list.Token}, nil
}

func (m *UsernsManager) getOrCreate(pod *v1.Pod, runtimeHandler string) (*runtimeapi.UserNamespace, error) {
	enabled := utilfeature.DefaultFeatureGate.Enabled(features.UserNamespacesSupport)
	node := &runtimeapi.UserNamespace{Mode: runtimeapi.NamespaceMode_NODE}
	switch unset := pod == nil || pod.Spec.HostUsers == nil; {
	case unset && !enabled:
		return nil, nil
	case !unset && !enabled:
		return nil, fmt.Errorf("the feature gate %q is disabled: can't set spec.HostUsers", features.UserNamespacesSupport)
	case unset || *pod.Spec.HostUsers:
		return node, nil
	}
	if err := m.checkHandler(runtimeHandler); err != nil {
		return nil, err
	}
	answer, err := m.store.ClaimUserNamespace(context.Background(), waybill.ClaimUserNamespace{
		PodUID:         string(pod.UID),
		HostUsers:      pod.Spec.HostUsers,
		RuntimeHandler: runtimeHandler,
	})
	if err != nil {
		return nil, fmt.Errorf("create user namespace: %w", err)
	}
	if answer.Mapping == nil {
		return node, nil
	}
	ids := func() []*runtimeapi.IDMapping {
		m := answer.Mapping
		return []*runtimeapi.IDMapping{{HostId: uint32(m.HostID), ContainerId: uint32(m.ContainerID), Length: uint32(m.Length)}}
	}
	return &runtimeapi.UserNamespace{Mode: runtimeapi.NamespaceMode_POD, Uids: ids(), Gids: ids()}, nil
}

// checkHandler asks the kubelet, which has the runtime's latest status, and stores its answer.
func (m *UsernsManager) checkHandler(runtimeHandler string) error {
	supported, err := m.pods.HandlerSupportsUserNamespaces(runtimeHandler)
	if err == nil && supported {
		return m.registerHandler(runtimeHandler)
	}
	message := "can't set `spec.hostUsers: false`, runtime does not support user namespaces"
	if runtimeHandler != "" {
		message = fmt.Sprintf("can't set `spec.hostUsers: false`, RuntimeClass handler %q does not support user namespaces", runtimeHandler)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", message, err)
	}
	return errors.New(message)
}

func (m *UsernsManager) registerHandler(runtimeHandler string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	listed, err := m.store.ListRuntimes(context.Background())
	if err != nil {
		return fmt.Errorf("read the runtime handlers: %w", err)
	}
	handlers := listed.Handlers
	at := slices.IndexFunc(handlers, func(handler waybill.RuntimeHandler) bool {
		return handler.Name == runtimeHandler || runtimeHandler == "" && handler.IsDefault
	})
	switch {
	case at < 0:
		handlers = append(handlers, waybill.RuntimeHandler{Name: runtimeHandler, IsDefault: runtimeHandler == "", UserNamespaces: true})
	case handlers[at].UserNamespaces:
		return nil
	default:
		handlers[at].UserNamespaces = true
	}
	if _, err := m.store.SetRuntimes(context.Background(), waybill.SetRuntimes{Handlers: handlers}); err != nil {
		return fmt.Errorf("store the runtime handlers: %w", err)
	}
	return nil
}

// Release releases the mapping of a pod that is gone.
func (m *UsernsManager) Release(logger klog.Logger, podUID types.UID) {
	if !utilfeature.DefaultFeatureGate.Enabled(features.UserNamespacesSupport) {
		return
	}
	answer, err := m.store.ReleaseUserNamespace(context.Background(), waybill.ReleaseUserNamespace{PodUID: string(podUID)})
	switch {
	case err != nil:
		logger.Error(err, "failed to release pod user namespace allocation", "podUID", podUID)
	case answer.Released:
		logger.V(5).Info("releasing pod user namespace allocation", "podUID", podUID)
	default:
		logger.V(5).Info("pod user namespace allocation not present", "podUID", podUID)
	}
}

// CleanupOrphanedPodUsernsAllocations releases the mappings of all pods in neither list. Unlike the
// kubelet's, it keeps the mapping of a listed pod whose directory vanished, and mappings handed out
// after the previous cleanup, since a newer pod is in neither list. So make the lists after the
// previous cleanup has returned, as the kubelet's housekeeping does.
func (m *UsernsManager) CleanupOrphanedPodUsernsAllocations(ctx context.Context, pods []*v1.Pod, runningPods []*kubecontainer.Pod) error {
	if !utilfeature.DefaultFeatureGate.Enabled(features.UserNamespacesSupport) {
		return nil
	}
	existing := make([]string, 0, len(pods))
	for _, pod := range pods {
		existing = append(existing, string(pod.UID))
	}
	running := make([]string, 0, len(runningPods))
	for _, pod := range runningPods {
		running = append(running, string(pod.ID))
	}

	m.mu.Lock()
	defer m.mu.Unlock()
	// The lists are the kubelet's own: a drained node has no pods.
	report, err := m.store.CleanUpUserNamespaces(ctx, waybill.CleanUpUserNamespaces{Existing: existing, Running: running, Token: m.token, AllowEmpty: true})
	if err != nil {
		return fmt.Errorf("user namespace: %w", err)
	}
	for _, podUID := range report.ReleasedPods {
		klog.FromContext(ctx).V(5).Info("Clean up orphaned pod user namespace possible allocation", "podUID", podUID)
	}
	list, err := m.store.BeginList(ctx)
	if err != nil {
		return fmt.Errorf("user namespace: %w", err)
	}
	m.token = list.Token
	return nil
}
