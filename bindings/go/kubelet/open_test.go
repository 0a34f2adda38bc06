package kubelet

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/go-logr/logr/funcr"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	featuregatetesting "k8s.io/component-base/featuregate/testing"
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/pkg/features"
	kubeletconfig "k8s.io/kubernetes/pkg/kubelet/apis/config"
	kubecontainer "k8s.io/kubernetes/pkg/kubelet/container"
	"k8s.io/kubernetes/pkg/kubelet/images/pullmanager"
	"waybill.dev/go"
	"waybill.dev/go/store"
)

const someImage = "registry.example/team/app:1"

func setupIn(directory string, images ...kubecontainer.Image) Setup {
	return Setup{
		Directory: filepath.Join(directory, "waybill"), KubeletDirectory: directory, Settings: waybill.Settings{MapBytes: 64 << 20},
		VerificationPolicy: kubeletconfig.NeverVerifyPreloadedImages,
		ImageService:       &runtimeImages{images: images},
	}
}

func openSetup(t *testing.T, ctx context.Context, setup Setup) *store.Store {
	t.Helper()
	store, err := OpenStore(ctx, setup)
	must(t, err)
	t.Cleanup(func() { store.Close() })
	return store
}

// logged returns a context, and what is logged by it.
func logged() (context.Context, func() string) {
	var mu sync.Mutex
	var lines []string
	logger := funcr.New(func(_, line string) {
		mu.Lock()
		defer mu.Unlock()
		lines = append(lines, line)
	}, funcr.Options{})
	return klog.NewContext(context.Background(), logger), func() string {
		mu.Lock()
		defer mu.Unlock()
		return strings.Join(lines, "\n")
	}
}

func TestOpenStoreTakesItsOptions(t *testing.T) {
	setup := setupIn(scratchDir(t), listedAs("sha256:aa", pause))
	now := time.Date(2031, 1, 2, 3, 4, 5, 0, time.UTC)
	setup.Test = store.TestOptions{ManualClock: true, UnixNs: now.UnixNano(), BootNs: 1}
	setup.NoSocket = true
	opened := openSetup(t, quiet, setup)
	if _, err := os.Lstat(filepath.Join(setup.Directory, "owner.sock")); !os.IsNotExist(err) {
		t.Errorf("the store is served: %v", err)
	}
	if why, err := opened.Explain(quiet, waybill.Explain{ImageRef: "sha256:aa"}); err != nil || why.Preloaded == nil || !why.Preloaded.Since.Equal(now) {
		t.Errorf("the image of the first start: %+v, %v", why, err)
	}
	if s, err := opened.GetStatus(quiet, waybill.GetStatus{}); err != nil || s.Counts.MapBytes != setup.Settings.MapBytes {
		t.Errorf("the map: %+v, %v", s, err)
	}
	must(t, opened.Close())
	setup.NoSocket = false
	openSetup(t, quiet, setup)
	if _, err := os.Lstat(filepath.Join(setup.Directory, "owner.sock")); err != nil {
		t.Errorf("the store is not served: %v", err)
	}
	setup.VerificationPolicy = "Sometimes"
	if _, err := OpenStore(quiet, setup); err == nil {
		t.Error("opened with an unknown policy")
	}
	setup.ImageService = nil
	if _, err := OpenStore(quiet, setup); err == nil {
		t.Error("opened without an image service")
	}
}

func TestOpenStoreLogsWhatItFound(t *testing.T) {
	directory := scratchDir(t)
	broken := filepath.Join(directory, "image_manager", "pulled", "sha256-"+strings.Repeat("a", 64))
	must(t, os.MkdirAll(filepath.Dir(broken), 0o700))
	must(t, os.WriteFile(broken, []byte("{"), 0o600))
	ctx, log := logged()
	setup := setupIn(directory, listedAs("sha256:aa", pause))
	store := openSetup(t, ctx, setup)
	for _, want := range []string{`"Files that could not be read keep their images closed`, filepath.Base(broken), `"Opened the waybill store"`} {
		if !strings.Contains(log(), want) {
			t.Errorf("not logged: %s; but\n%s", want, log())
		}
	}
	must(t, store.Close())
	must(t, os.RemoveAll(setup.Directory))
	ctx, log = logged()
	openSetup(t, ctx, setup)
	if !strings.Contains(log(), "degraded") {
		t.Errorf("the loss of the store is not logged, but\n%s", log())
	}
}

// A first start would presume what a tenant pulled.
func TestOpenStoreAfterAllWasLost(t *testing.T) {
	setup := setupIn(scratchDir(t), listedAs("sha256:aa", pause))
	if err := syscall.Setxattr(setup.KubeletDirectory, "user.try", nil, 0); err != nil {
		t.Skip(err)
	}
	for _, lost := range []bool{false, true} {
		store := openSetup(t, quiet, setup)
		if r := opening(t, store); r.Unrecorded != lost {
			t.Errorf("lost %v: %+v", lost, r)
		}
		must(t, store.Close())
		for _, directory := range []string{setup.Directory, filepath.Join(setup.KubeletDirectory, "image_manager")} {
			must(t, os.RemoveAll(directory))
		}
	}
}

func TestOpenStoreWaitsForTheOwner(t *testing.T) {
	setup := setupIn(scratchDir(t))
	owner := openSetup(t, quiet, setup)
	setup.OwnerWait = -1
	if _, err := OpenStore(quiet, setup); !errors.Is(err, waybill.ErrOwned) {
		t.Errorf("without a wait: %v", err)
	}
	setup.OwnerWait = time.Hour
	// What happens while it waits: with its second list the first attempt has failed.
	open := func(ctx context.Context, meanwhile func()) error {
		asked := 0
		setup.ImageService = &runtimeImages{during: func(context.Context) {
			if asked++; asked == 2 {
				meanwhile()
			}
		}}
		opened, err := OpenStore(ctx, setup)
		if err == nil {
			err = opened.Close()
		}
		return err
	}
	ctx, cancel := context.WithCancel(quiet)
	if err := open(ctx, cancel); !errors.Is(err, waybill.ErrOwned) || !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
	must(t, open(quiet, func() { must(t, owner.Close()) }))
}

// The kubelet's own manager replays the intents itself.
func TestOpenStoreForAccessor(t *testing.T) {
	setup := setupIn(scratchDir(t))
	setup.ForAccessor, setup.ImageService = true, nil
	store := openSetup(t, quiet, setup)
	accessor := newAccessor(t, store)
	must(t, accessor.WriteImagePullIntent(klog.Background(), someImage))
	must(t, store.Close())
	store = openSetup(t, quiet, setup)
	accessor = newAccessor(t, store)
	if intents, err := accessor.ListImagePullIntents(); err != nil || len(intents) != 1 {
		t.Errorf("the intents: %v, %v", intents, err)
	}
	images := &runtimeImages{images: []kubecontainer.Image{listedAs("sha256:bb", someImage)}}
	if _, err := pullmanager.NewImagePullManager(quiet, accessor, pullmanager.NeverVerifyPreloadedPullPolicy(), images, 1); err != nil {
		t.Fatal(err)
	}
	if record, exists, err := accessor.GetImagePulledRecord("sha256:bb"); err != nil || !exists || len(record.CredentialMapping) != 0 {
		t.Errorf("the record of the pull that was cut off: %+v, %t, %v", record, exists, err)
	}
}

// With the feature gate off no pull is recorded: what came meanwhile is closed once the gate is on. The
// user namespaces are there all along.
func TestOpenStoreWithTheFeatureGateOff(t *testing.T) {
	setup := setupIn(scratchDir(t), listedAs("sha256:aa", pause))
	manager := func(store *store.Store) *ImagePullManager {
		m, err := NewImagePullManager(store, setup.ImageService)
		must(t, err)
		return m
	}
	store := openSetup(t, quiet, setup)
	if mustPull(t, manager(store), pause, "sha256:aa", neverAsked(t)) {
		t.Error("an image of the first start is to be pulled")
	}
	store.Close()

	t.Run("off", func(t *testing.T) {
		featuregatetesting.SetFeatureGateDuringTest(t, utilfeature.DefaultFeatureGate, features.KubeletEnsureSecretPulledImages, false)
		without := setup
		without.VerificationPolicy = "" // as the kubelet's configuration must have it
		if _, err := MakeUsernsManager(klog.Background(), openSetup(t, quiet, without), &nodePods{}); err != nil {
			t.Error(err)
		}
	})

	setup.ImageService = &runtimeImages{images: []kubecontainer.Image{listedAs("sha256:aa", pause), listedAs("sha256:bb", someImage)}}
	store = openSetup(t, quiet, setup)
	if r := opening(t, store); !r.Unrecorded || r.Closed != 1 || r.Degraded {
		t.Errorf("%+v", r)
	}
	m := manager(store)
	m.PruneUnknownRecords(quiet, nil, time.Now()) // judges the runtime's images
	if mustPull(t, m, pause, "sha256:aa", neverAsked(t)) {
		t.Error("what was known to be preloaded is closed")
	}
	if !mustPull(t, m, someImage, "sha256:bb", credentialsOf(secretOf("a"))) {
		t.Error("what was pulled with the feature gate off is open")
	}
}
