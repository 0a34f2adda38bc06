//go:build waybill_kubelet_1_35

package kubelet

import (
	"context"

	v1 "k8s.io/api/core/v1"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
	"k8s.io/klog/v2"
	kubeletconfig "k8s.io/kubernetes/pkg/kubelet/apis/config"
	"k8s.io/kubernetes/pkg/kubelet/images/pullmanager"
)

// The methods of release_1_36.go, as Kubernetes 1.35 wants them.

// RecordPullIntent returns once the intent is on disk. The pull must not begin before.
func (m *ImagePullManager) RecordPullIntent(image string) error {
	return m.recordPullIntent(klog.Background(), image)
}

func recordIntentWith(_ context.Context, manager pullmanager.ImagePullManager, image string) error {
	return manager.RecordPullIntent(image)
}

// WriteImagePullIntent returns once the intent is on disk.
func (a *RecordsAccessor) WriteImagePullIntent(image string) error {
	return a.writeIntent(klog.Background(), image)
}

// DeleteImagePullIntent succeeds if there is no intent.
func (a *RecordsAccessor) DeleteImagePullIntent(image string) error {
	return a.deleteIntent(klog.Background(), image)
}

// WriteImagePulledRecord returns once the record is on disk.
func (a *RecordsAccessor) WriteImagePulledRecord(record *kubeletconfig.ImagePulledRecord) error {
	return a.writeRecord(klog.Background(), record)
}

// DeleteImagePulledRecord succeeds if there is no record. An image in quarantine stays closed: unlike
// deleting a kubelet's file, this does not make it look preloaded.
func (a *RecordsAccessor) DeleteImagePulledRecord(imageRef string) error {
	return a.deleteRecord(klog.Background(), imageRef)
}

// GetOrCreateUserNamespaceMappings returns the user namespace for the pod's sandbox. A mapping is on
// disk before it is returned, and stays the pod's until it is released.
func (m *UsernsManager) GetOrCreateUserNamespaceMappings(_ context.Context, pod *v1.Pod, runtimeHandler string) (*runtimeapi.UserNamespace, error) {
	return m.getOrCreate(pod, runtimeHandler)
}

// Methods of UserNamespaceManager and Pods.
type usernsInRelease interface {
	GetOrCreateUserNamespaceMappings(ctx context.Context, pod *v1.Pod, runtimeHandler string) (*runtimeapi.UserNamespace, error)
}

type podsInRelease interface {
	GetKubeletMappings(idsPerPod uint32) (firstID, count uint32, err error)
}

func kubeletMappings(_ klog.Logger, pods Pods, idsPerPod uint32) (firstID, count uint32, err error) {
	return pods.GetKubeletMappings(idsPerPod)
}
