package kubelet_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/go-logr/logr"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	metadatafake "k8s.io/client-go/metadata/fake"
	"k8s.io/klog/v2"
	kubeletconfig "k8s.io/kubernetes/pkg/kubelet/apis/config"
	kubecontainer "k8s.io/kubernetes/pkg/kubelet/container"
	"k8s.io/kubernetes/pkg/kubelet/images/pullmanager"
	"waybill.dev/go"
	"waybill.dev/go/kubelet"
)

// imageService stands in for the kubelet's own (kubeRuntimeManager).
type imageService struct{ kubecontainer.ImageService }

func (imageService) ListImages(context.Context) ([]kubecontainer.Image, error) {
	return []kubecontainer.Image{{ID: "sha256:4c", RepoTags: []string{"registry.example/base/pause:3.10"}}}, nil
}

// pods stands in for the *Kubelet.
type pods struct{}

func (pods) HandlerSupportsUserNamespaces(string) (bool, error) { return true, nil }
func (pods) GetMaxPods() int                                    { return 110 }
func (pods) GetKubeletMappings(klog.Logger, uint32) (uint32, uint32, error) {
	return 65536, 110 * 65536, nil
}

func secret(name string) kubeletconfig.ImagePullSecret {
	return kubeletconfig.ImagePullSecret{UID: "7d0c", Namespace: "team", Name: name, CredentialHash: "hash of " + name}
}

// NewKubeGenericRuntimeManager does this instead of making a policy, a file accessor, a cache and a pull
// manager. Then come the calls of the kubelet's image manager.
func ExampleNewImagePullManager() {
	ctx := klog.NewContext(context.Background(), logr.Discard())
	rootDirectory, err := os.MkdirTemp("", "kubelet-")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(rootDirectory)

	store, err := kubelet.OpenStore(ctx, kubelet.Setup{
		Directory:          filepath.Join(rootDirectory, "waybill"),
		KubeletDirectory:   rootDirectory,
		VerificationPolicy: kubeletconfig.NeverVerifyPreloadedImages,
		ImageService:       imageService{},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer store.Close()
	var manager pullmanager.ImagePullManager
	if manager, err = kubelet.NewImagePullManager(store, imageService{}); err != nil {
		fmt.Println(err)
		return
	}

	const image, imageRef = "registry.example/team/app:1", "sha256:1f"
	if err := manager.RecordPullIntent(logr.Discard(), image); err != nil {
		fmt.Println(err)
		return
	}
	manager.RecordImagePulled(ctx, image, imageRef, &kubeletconfig.ImagePullCredentials{
		KubernetesSecrets: []kubeletconfig.ImagePullSecret{secret("ours")},
	})
	for _, name := range []string{"ours", "theirs"} {
		pull, err := manager.MustAttemptImagePull(ctx, image, imageRef, func() ([]kubeletconfig.ImagePullSecret, *kubeletconfig.ImagePullServiceAccount, error) {
			s := secret(name)
			s.UID = "of " + name
			return []kubeletconfig.ImagePullSecret{s}, nil, nil
		})
		fmt.Printf("a pod with the secret %q must pull: %t, %v\n", name, pull, err)
	}
	pull, err := manager.MustAttemptImagePull(ctx, "registry.example/base/pause:3.10", "sha256:4c", nil)
	fmt.Printf("an image that came without the kubelet must be pulled: %t, %v\n", pull, err)
	// Output:
	// a pod with the secret "ours" must pull: false, <nil>
	// a pod with the secret "theirs" must pull: true, <nil>
	// an image that came without the kubelet must be pulled: false, <nil>
}

// The smallest change: the kubelet's own manager with its records in a waybill store.
func ExampleNewRecordsAccessor() {
	ctx := klog.NewContext(context.Background(), logr.Discard())
	rootDirectory, err := os.MkdirTemp("", "kubelet-")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(rootDirectory)

	store, err := kubelet.OpenStore(ctx, kubelet.Setup{
		Directory:        filepath.Join(rootDirectory, "waybill"),
		KubeletDirectory: rootDirectory,
		ForAccessor:      true,
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer store.Close()
	accessor, err := kubelet.NewRecordsAccessor(store)
	if err != nil {
		fmt.Println(err)
		return
	}
	manager, err := pullmanager.NewImagePullManager(ctx, accessor, pullmanager.NeverVerifyPreloadedPullPolicy(), imageService{}, 5)
	if err != nil {
		fmt.Println(err)
		return
	}
	manager.RecordImagePulled(ctx, "registry.example/team/app:1", "sha256:1f", &kubeletconfig.ImagePullCredentials{NodePodsAccessible: true})
	record, exists, err := accessor.GetImagePulledRecord("sha256:1f")
	fmt.Println(exists, err, record.CredentialMapping["registry.example/team/app"].NodePodsAccessible)
	// Output: true <nil> true
}

// A Secret was deleted while the kubelet was down.
func ExampleWatchCredentials() {
	ctx, cancel := context.WithCancel(klog.NewContext(context.Background(), logr.Discard()))
	defer cancel()
	directory, err := os.MkdirTemp("", "kubelet-")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(directory)
	store, err := waybill.Open(ctx, waybill.Options{Directory: filepath.Join(directory, "waybill"), Witness: waybill.WitnessNone()})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer store.Close()
	copy := waybill.ImageCopy{Image: "registry.example/team/app:1", ImageRef: "sha256:1f"}
	secrets := []waybill.ImagePullSecret{
		{UID: "1", Namespace: "team", Name: "deleted", CredentialHash: "a"},
		{UID: "2", Namespace: "team", Name: "there", CredentialHash: "b"},
	}
	pull, err := store.RecordPullIntent(copy)
	if err == nil {
		err = store.RecordImagePulled(waybill.PulledImage{ImageCopy: copy, Pull: pull, Credentials: &waybill.ImagePullCredentials{KubernetesSecrets: secrets}})
	}
	if err != nil {
		fmt.Println(err)
		return
	}

	// On a node: metadata.NewForConfig(config).
	object := func(kind, name, uid string) *metav1.PartialObjectMetadata {
		return &metav1.PartialObjectMetadata{
			TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: kind},
			ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: name, UID: types.UID(uid)},
		}
	}
	scheme := metadatafake.NewTestScheme()
	if err := metav1.AddMetaToScheme(scheme); err != nil {
		fmt.Println(err)
		return
	}
	client := metadatafake.NewSimpleMetadataClient(scheme, object("Secret", "there", "2"), object("ServiceAccount", "default", "3"))
	ended := make(chan error)
	go func() { ended <- kubelet.WatchCredentials(ctx, store, client) }()

	mustPull := func(secret waybill.ImagePullSecret) bool {
		return store.MustAttemptPull(copy, waybill.PodCredentials{Secrets: []waybill.ImagePullSecret{secret}}).Pull()
	}
	for !mustPull(secrets[0]) {
		time.Sleep(time.Millisecond)
	}
	fmt.Println(mustPull(secrets[0]), mustPull(secrets[1]))
	cancel()
	fmt.Println(<-ended)
	// Output:
	// true false
	// <nil>
}

// NewMainKubelet does this instead of calling userns.MakeUserNsManager.
func ExampleMakeUsernsManager() {
	ctx := context.Background()
	rootDirectory, err := os.MkdirTemp("", "kubelet-")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(rootDirectory)

	userNamespaces, err := kubelet.UserNamespacesOf(logr.Discard(), pods{}, nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	store, err := kubelet.OpenStore(ctx, kubelet.Setup{
		Directory:          filepath.Join(rootDirectory, "waybill"),
		KubeletDirectory:   rootDirectory,
		VerificationPolicy: kubeletconfig.NeverVerifyPreloadedImages,
		ImageService:       imageService{},
		UserNamespaces:     userNamespaces,
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer store.Close()
	var manager kubelet.UserNamespaceManager
	if manager, err = kubelet.MakeUsernsManager(logr.Discard(), store, pods{}); err != nil {
		fmt.Println(err)
		return
	}

	pod := &v1.Pod{}
	pod.UID = "0c1e2d3f-0000-4000-8000-00000000000a"
	pod.Spec.HostUsers = new(bool) // false
	mapping, err := manager.GetOrCreateUserNamespaceMappings(logr.Discard(), pod, "")
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(mapping.Mode, len(mapping.Uids), mapping.Uids[0].ContainerId, mapping.Uids[0].Length)
	// Output: POD 1 0 65536
}
