//go:build !waybill_kubelet_1_35

package kubelet

import (
	"context"

	v1 "k8s.io/api/core/v1"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
	"k8s.io/klog/v2"
	kubeletconfig "k8s.io/kubernetes/pkg/kubelet/apis/config"
	"k8s.io/kubernetes/pkg/kubelet/images/pullmanager"
)

// The methods that take a logger or a context depending on the kubelet's release; release_1_35.go has
// them as Kubernetes 1.35 wants them.

// RecordPullIntent returns once the intent is on disk. The pull must not begin before.
func (m *ImagePullManager) RecordPullIntent(logger klog.Logger, image string) error {
	return m.recordPullIntent(logger, image)
}

func recordIntentWith(ctx context.Context, manager pullmanager.ImagePullManager, image string) error {
	return manager.RecordPullIntent(klog.FromContext(ctx), image)
}

// WriteImagePullIntent returns once the intent is on disk.
func (a *RecordsAccessor) WriteImagePullIntent(logger klog.Logger, image string) error {
	return a.writeIntent(logger, image)
}

// DeleteImagePullIntent succeeds if there is no intent.
func (a *RecordsAccessor) DeleteImagePullIntent(logger klog.Logger, image string) error {
	return a.deleteIntent(logger, image)
}

// WriteImagePulledRecord returns once the record is on disk.
func (a *RecordsAccessor) WriteImagePulledRecord(logger klog.Logger, record *kubeletconfig.ImagePulledRecord) error {
	return a.writeRecord(logger, record)
}

// DeleteImagePulledRecord succeeds if there is no record. An image in quarantine stays closed: unlike
// deleting a kubelet's file, this does not make it look preloaded.
func (a *RecordsAccessor) DeleteImagePulledRecord(logger klog.Logger, imageRef string) error {
	return a.deleteRecord(logger, imageRef)
}

// GetOrCreateUserNamespaceMappings returns the user namespace for the pod's sandbox. A mapping is on
// disk before it is returned, and stays the pod's until it is released.
func (m *UsernsManager) GetOrCreateUserNamespaceMappings(_ klog.Logger, pod *v1.Pod, runtimeHandler string) (*runtimeapi.UserNamespace, error) {
	return m.getOrCreate(pod, runtimeHandler)
}

// Methods of UserNamespaceManager and Pods.
type usernsInRelease interface {
	GetOrCreateUserNamespaceMappings(logger klog.Logger, pod *v1.Pod, runtimeHandler string) (*runtimeapi.UserNamespace, error)
}

type podsInRelease interface {
	GetKubeletMappings(logger klog.Logger, idsPerPod uint32) (firstID, count uint32, err error)
}

func kubeletMappings(logger klog.Logger, pods Pods, idsPerPod uint32) (firstID, count uint32, err error) {
	return pods.GetKubeletMappings(logger, idsPerPod)
}
