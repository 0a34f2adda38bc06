//go:build waybill_upstream

// Package images is the kubelet's package of this name with its tests, which have waybill in place of a
// mock of the image pull manager. All but this file comes from the module k8s.io/kubernetes.
package images

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/go-logr/logr"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/klog/v2"
	kubeletconfig "k8s.io/kubernetes/pkg/kubelet/apis/config"
	kubecontainer "k8s.io/kubernetes/pkg/kubelet/container"
	"k8s.io/kubernetes/pkg/kubelet/images/pullmanager"
	"waybill.dev/go"
	"waybill.dev/go/kubelet"
)

// What the tests of the kubelet use of test/utils/ktesting and pkg/controller/testutil, which need
// hundreds of packages more.

type testContext struct {
	context.Context
	t *testing.T
}

func newContext(t *testing.T) testContext {
	return testContext{klog.NewContext(t.Context(), logr.Discard()), t}
}

func (c testContext) TB() *testing.T { return c.t }

// SyncTest takes its time: what the store does is outside Go, and no bubble's clock waits for it.
func (c testContext) SyncTest(_ string, test func(testContext)) { test(c) }

func (c testContext) Errorf(format string, args ...any) { c.t.Errorf(format, args...) }

type eventRecorder struct {
	mu     sync.Mutex
	Events []*v1.Event
}

func newEventRecorder() *eventRecorder { return &eventRecorder{} }

func (r *eventRecorder) Event(_ runtime.Object, kind, reason, message string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.Events = append(r.Events, &v1.Event{Type: kind, Reason: reason, Message: message})
}

func (r *eventRecorder) Eventf(object runtime.Object, kind, reason, format string, args ...any) {
	r.Event(object, kind, reason, fmt.Sprintf(format, args...))
}

func (r *eventRecorder) AnnotatedEventf(object runtime.Object, _ map[string]string, kind, reason, format string, args ...any) {
	r.Eventf(object, kind, reason, format, args...)
}

// The image that the fake runtime of the tests has.
const present = "present_image:latest"

type imageService struct{ kubecontainer.ImageService }

func (imageService) ListImages(context.Context) ([]kubecontainer.Image, error) {
	return []kubecontainer.Image{{ID: present}}, nil
}

func (imageService) GetImageRef(context.Context, kubecontainer.ImageSpec) (string, error) {
	return "", nil
}

// inPlaceOf returns waybill's manager, on a store that knows what the mock would allow.
func inPlaceOf(t *testing.T, mock *mockImagePullManagerConfig) pullmanager.ImagePullManager {
	t.Helper()
	directory := t.TempDir()
	setup := kubelet.Setup{
		Directory: filepath.Join(directory, "waybill"), KubeletDirectory: directory, Settings: waybill.Settings{Mode: waybill.ModeKubelet, MapBytes: 16 << 20},
		VerificationPolicy: kubeletconfig.NeverVerifyPreloadedImages, ImageService: imageService{}, NoSocket: true,
	}
	if os.Getenv("WAYBILL_RULES") == "strict" {
		setup.Settings.Mode = waybill.ModeStrict
	}
	if mock.allowAll {
		setup.VerificationPolicy = kubeletconfig.NeverVerify
	}
	ctx := klog.NewContext(context.Background(), logr.Discard())
	store, err := kubelet.OpenStore(ctx, setup)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { store.Close() })
	manager, err := kubelet.NewImagePullManager(store, imageService{})
	if err != nil {
		t.Fatal(err)
	}
	if mock.allowAll {
		return manager
	}
	record := func(image string, credentials kubeletconfig.ImagePullCredentials) {
		if err := manager.RecordPullIntent(logr.Discard(), image); err != nil {
			t.Fatal(err)
		}
		manager.RecordImagePulled(ctx, image, present, &credentials)
	}
	record("present_image", kubeletconfig.ImagePullCredentials{}) // it was pulled, nobody knows with what
	for image, secrets := range mock.allowedSecrets {
		for i := range secrets {
			secrets[i].CredentialHash = "not the one of the pod's"
		}
		record(image, kubeletconfig.ImagePullCredentials{KubernetesSecrets: secrets})
	}
	for image, accounts := range mock.allowedServiceAccounts {
		record(image, kubeletconfig.ImagePullCredentials{KubernetesServiceAccounts: accounts})
	}
	return manager
}
