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

// The methods of release_1_36.go, which says what they do, as Kubernetes 1.35 wants them.

func (m *ImagePullManager) RecordPullIntent(image string) error {
	return m.recordPullIntent(klog.Background(), image)
}

func recordIntentWith(_ context.Context, manager pullmanager.ImagePullManager, image string) error {
	return manager.RecordPullIntent(image)
}

func (a *RecordsAccessor) WriteImagePullIntent(image string) error {
	return a.writeIntent(klog.Background(), image)
}

func (a *RecordsAccessor) DeleteImagePullIntent(image string) error {
	return a.deleteIntent(klog.Background(), image)
}

func (a *RecordsAccessor) WriteImagePulledRecord(record *kubeletconfig.ImagePulledRecord) error {
	return a.writeRecord(klog.Background(), record)
}

func (a *RecordsAccessor) DeleteImagePulledRecord(imageRef string) error {
	return a.deleteRecord(klog.Background(), imageRef)
}

func (m *UsernsManager) GetOrCreateUserNamespaceMappings(_ context.Context, pod *v1.Pod, runtimeHandler string) (*runtimeapi.UserNamespace, error) {
	return m.getOrCreate(pod, runtimeHandler)
}

type usernsInRelease interface {
	GetOrCreateUserNamespaceMappings(ctx context.Context, pod *v1.Pod, runtimeHandler string) (*runtimeapi.UserNamespace, error)
}

type podsInRelease interface {
	GetKubeletMappings(idsPerPod uint32) (firstID, count uint32, err error)
}

func kubeletMappings(_ klog.Logger, pods Pods, idsPerPod uint32) (firstID, count uint32, err error) {
	return pods.GetKubeletMappings(idsPerPod)
}
