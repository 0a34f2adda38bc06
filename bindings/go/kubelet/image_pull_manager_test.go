package kubelet

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	"k8s.io/klog/v2"
	kubeletconfig "k8s.io/kubernetes/pkg/kubelet/apis/config"
	kubecontainer "k8s.io/kubernetes/pkg/kubelet/container"
	"k8s.io/kubernetes/pkg/kubelet/images/pullmanager"
	"waybill.dev/go"
	"waybill.dev/go/store"
)

func newManager(t *testing.T, rules waybill.Mode, images *runtimeImages) (*store.Store, *ImagePullManager) {
	t.Helper()
	store := openTestStore(t, store.Options{Settings: waybill.Settings{Mode: rules}})
	manager, err := NewImagePullManager(store, images)
	must(t, err)
	return store, manager
}

func credentialsOf(secrets ...kubeletconfig.ImagePullSecret) pullmanager.GetPodCredentials {
	return func() ([]kubeletconfig.ImagePullSecret, *kubeletconfig.ImagePullServiceAccount, error) {
		return secrets, nil, nil
	}
}

func neverAsked(t *testing.T) pullmanager.GetPodCredentials {
	return func() ([]kubeletconfig.ImagePullSecret, *kubeletconfig.ImagePullServiceAccount, error) {
		t.Error("the pod's credentials were asked for")
		return nil, nil, nil
	}
}

func mustPull(t *testing.T, manager *ImagePullManager, image, ref string, fetch pullmanager.GetPodCredentials) bool {
	t.Helper()
	pull, err := manager.MustAttemptImagePull(quiet, image, ref, fetch)
	must(t, err)
	return pull
}

func pullWith(t *testing.T, manager *ImagePullManager, image, ref string, secret kubeletconfig.ImagePullSecret) {
	t.Helper()
	must(t, manager.RecordPullIntent(logr.Discard(), image))
	manager.RecordImagePulled(quiet, image, ref, &kubeletconfig.ImagePullCredentials{KubernetesSecrets: []kubeletconfig.ImagePullSecret{secret}})
}

func TestAPanicOfTheCallbackIsTheCallers(t *testing.T) {
	_, manager := newManager(t, waybill.ModeStrict, &runtimeImages{})
	pullWith(t, manager, "team/app:1", "ref", secretOf("a"))
	before := readLabels()
	func() {
		defer func() {
			if got := recover(); got != "out of order" {
				t.Errorf("recovered %v", got)
			}
		}()
		_, err := manager.MustAttemptImagePull(quiet, "team/app:1", "ref", func() ([]kubeletconfig.ImagePullSecret, *kubeletconfig.ImagePullServiceAccount, error) {
			panic("out of order")
		})
		t.Errorf("no panic, but %v", err)
	}()
	if counted := readLabels(); counted[3] != before[3]+1 {
		t.Errorf("error was counted %v times", counted[3]-before[3])
	}
	if mustPull(t, manager, "team/app:1", "ref", credentialsOf(secretOf("a"))) {
		t.Error("the store is no more what it was")
	}
}

func TestPullErrorReachesTheMetrics(t *testing.T) {
	store := openTestStore(t, store.Options{})
	manager, err := NewImagePullManager(store, &runtimeImages{})
	must(t, err)
	manager.RecordImagePullFailed(WithPullError(quiet, errors.New("unexpected status: 401 Unauthorized")), "nginx")
	manager.RecordImagePullFailed(quiet, "nginx")
	answer, err := store.GetMetrics(quiet)
	must(t, err)
	for _, class := range []string{"auth", "unknown"} {
		if !regexp.MustCompile(`(?m)^waybill_pulls_total\{outcome="\w+",class="` + class + `"\} 1$`).MatchString(answer.Text) {
			t.Errorf("not counted: %s\n%s", class, answer.Text)
		}
	}
}

func TestManagerWrongUse(t *testing.T) {
	store := openTestStore(t, store.Options{})
	if _, err := NewImagePullManager(nil, nil); err == nil {
		t.Error("a nil store was taken")
	}
	if _, err := NewImagePullManager(store, nil); err == nil {
		t.Error("mode strict was taken without an image service")
	}
	manager, err := NewImagePullManager(store, &runtimeImages{})
	must(t, err)
	var logged []string
	ctx := klog.NewContext(quiet, funcr.New(func(_, args string) { logged = append(logged, args) }, funcr.Options{}))
	manager.RecordImagePulled(ctx, "No Image", "ref", nil)
	manager.RecordImagePulled(ctx, "nginx", "", nil)
	if len(logged) != 2 {
		t.Errorf("logged %q", logged)
	}
	pullWith(t, manager, "team/app:1", "of a", secretOf("a"))
	if pull, err := manager.MustAttemptImagePull(quiet, "team/app:1", "of a", nil); !pull || err == nil {
		t.Errorf("without a callback: %t, %v", pull, err)
	}
	manager.RecordImagePulled(ctx, "nginx", "ref", nil) // pulled under unknown circumstances
	if !mustPull(t, manager, "nginx", "ref", neverAsked(t)) {
		t.Error("an image whose credentials nobody knows is open")
	}
	must(t, store.Close())
	if !mustPull(t, manager, "nginx", "ref", neverAsked(t)) {
		t.Error("a closed store opens images")
	}
	if err := manager.RecordPullIntent(logr.Discard(), "nginx"); !errors.Is(err, waybill.ErrClosed) {
		t.Errorf("after closing: %v", err)
	}
	logged = nil
	manager.RecordImagePulled(ctx, "nginx", "ref", nil)
	manager.RecordImagePullFailed(ctx, "nginx")
	manager.PruneUnknownRecords(ctx, nil, time.Now())
	if len(logged) != 3 {
		t.Errorf("after closing logged %q", logged)
	}
}

func TestVerificationPolicies(t *testing.T) {
	if _, err := VerificationPolicy("Sometimes", nil); err == nil {
		t.Error("an unknown policy was taken")
	}
	for _, pattern := range []string{" nginx", "*", "/*", "nginx:1", "a*/b", "", "Nginx"} {
		_, kubelets := pullmanager.NewImagePullCredentialVerificationPolicy(kubeletconfig.NeverVerifyAllowlistedImages, []string{pattern})
		policy, err := VerificationPolicy(kubeletconfig.NeverVerifyAllowlistedImages, []string{pattern})
		must(t, err)
		opened, ours := store.Open(store.Options{Directory: scratchDir(t) + "/store", LossMarker: store.NoLossMarker, Settings: waybill.Settings{Policy: policy}})
		if ours == nil {
			must(t, opened.Close())
		}
		if (kubelets == nil) != (ours == nil) {
			t.Errorf("pattern %q: kubelet %v, waybill %v", pattern, kubelets, ours)
		}
	}
	// As in the kubelet's code, another policy ignores the allowlist.
	if _, err := VerificationPolicy(kubeletconfig.AlwaysVerify, []string{"nginx"}); err != nil {
		t.Error(err)
	}
}

func TestImagesOnNode(t *testing.T) {
	image := kubecontainer.Image{ID: "i", RepoTags: []string{"t"}, RepoDigests: []string{"d"}, Size: 7, Pinned: true, Spec: kubecontainer.ImageSpec{RuntimeHandler: "h"}}
	same(t, "converted", ImagesOnNode([]kubecontainer.Image{image, {ID: "j", Size: -1}}), []waybill.ListedImage{
		{ID: "i", RepoTags: []string{"t"}, RepoDigests: []string{"d"}, Bytes: 7, Pinned: true, RuntimeHandler: "h"}, {ID: "j"}})
	if ImagesOnNode(nil) == nil {
		t.Error("no images are unknown images")
	}
}

// A kubelet in use: pods start and stop while the collector runs. Two lists never overlap.
func TestManyGoroutines(t *testing.T) {
	images := &runtimeImages{images: []kubecontainer.Image{{ID: "ref-0"}, {ID: "ref-1"}, listedAs("sha256:aa", pause)}}
	var lists atomic.Int32
	images.during = func(context.Context) {
		if lists.Add(1) > 1 {
			t.Error("two lists at once")
		}
		time.Sleep(time.Millisecond)
		lists.Add(-1)
	}
	store, manager := newManager(t, waybill.ModeStrict, images)
	var pods sync.WaitGroup
	for i := range 8 {
		pods.Go(func() {
			for j := range 25 {
				image, ref := fmt.Sprintf("team/app-%d:1", j%3), fmt.Sprintf("ref-%d", j%3)
				if err := manager.RecordPullIntent(logr.Discard(), image); err != nil {
					t.Error(err)
				}
				if i%4 == 0 {
					manager.RecordImagePullFailed(quiet, image)
				} else {
					manager.RecordImagePulled(quiet, image, ref, &kubeletconfig.ImagePullCredentials{
						KubernetesSecrets: []kubeletconfig.ImagePullSecret{secretOf(fmt.Sprint(i))},
					})
				}
				if _, err := manager.MustAttemptImagePull(quiet, image, ref, credentialsOf(secretOf("other"))); err != nil {
					t.Error(err)
				}
				if j%10 == 0 {
					manager.PruneUnknownRecords(quiet, nil, time.Now())
				}
			}
		})
	}
	pods.Wait()
	if mustPull(t, manager, pause, "sha256:aa", neverAsked(t)) {
		t.Error("a preloaded image is to be pulled")
	}
	if intents, err := intentsOf(store); err != nil || len(intents) != 0 {
		pulls, _ := store.ListPulls(quiet, waybill.ListPulls{})
		t.Errorf("left: %v, %v; pulls: %+v", intents, err, pulls)
	}
}

// Registering a handler for user namespaces does not change pulls for the default one.
func TestUserNamespacesBesidePulls(t *testing.T) {
	store, _, userNamespaces := openUserns(t)
	manager, err := NewImagePullManager(store, &runtimeImages{})
	must(t, err)
	must(t, manager.RecordPullIntent(logr.Discard(), "team/app:1"))
	for i, handler := range []string{"modern", "", "modern"} {
		pod := podWith(podUID(i), new(bool))
		if _, err := userNamespaces.GetOrCreateUserNamespaceMappings(logr.Discard(), pod, handler); err != nil {
			t.Errorf("handler %q: %v", handler, err)
		}
	}
	manager.RecordImagePulled(quiet, "team/app:1", "ref", &kubeletconfig.ImagePullCredentials{
		KubernetesSecrets: []kubeletconfig.ImagePullSecret{secretOf("a")},
	})
	if mustPull(t, manager, "team/app:1", "ref", credentialsOf(secretOf("a"))) {
		t.Error("the image that was being pulled is closed to its pod")
	}
}

// A stranger's pull of the same string fails beside a tenant's. Without contexts of RecordPullIntent
// nobody says which of the two failed; only what was forgotten since the older one began is lost then.
func TestAStrangersFailedPullCostsNobodyTheirProof(t *testing.T) {
	const image, ref = "registry.example/team/app:1", "sha256:0000000000000000000000000000000000000000000000000000000000000001"
	secret := secretOf("a")
	cancelled, cancel := context.WithCancel(quiet)
	cancel()
	another, there := []kubecontainer.Image{{ID: "another"}}, []kubecontainer.Image{{ID: ref, RepoTags: []string{image}}}
	play := func(what string, failing context.Context, left []kubecontainer.Image, strangers int, named bool, forgotten string) {
		images := &runtimeImages{images: another}
		store, manager := newManager(t, waybill.ModeStrict, images)
		forget := func(when string) {
			if forgotten == when {
				forgetSecret(t, store, secret.Namespace, secret.Name)
			}
		}
		begin := func(ctx context.Context) context.Context {
			if !named {
				must(t, manager.RecordPullIntent(logr.Discard(), image))
				return ctx
			}
			ctx, err := RecordPullIntent(ctx, manager, image)
			must(t, err)
			return ctx
		}
		var begun []context.Context
		for range strangers {
			begun = append(begun, begin(failing))
		}
		forget("before the tenant's")
		tenant := begin(quiet)
		forget("after it")
		for range 3 - strangers {
			begun = append(begun, begin(failing))
		}
		images.images = left
		for _, ctx := range begun {
			manager.RecordImagePullFailed(ctx, image)
		}
		images.images = there
		manager.RecordImagePulled(tenant, image, ref, &kubeletconfig.ImagePullCredentials{KubernetesSecrets: []kubeletconfig.ImagePullSecret{secret}})
		lost := forgotten == "after it" || forgotten == "before the tenant's" && !named && strangers > 0
		stranger := kubeletconfig.ImagePullSecret{UID: "s", Namespace: "s", Name: "s", CredentialHash: "s"}
		if mustPull(t, manager, image, ref, credentialsOf(secret)) != lost || !mustPull(t, manager, image, ref, credentialsOf(stranger)) ||
			slices.Contains(openPulls(t, store), image+" running") {
			t.Errorf("%s, %d begin before, named %t, forgotten %s: not lost %t, or open to a stranger, or still running", what, strangers, named, forgotten, lost)
		}
	}
	for strangers := range 4 {
		for _, named := range []bool{false, true} {
			for _, forgotten := range []string{"not", "before the tenant's", "after it"} {
				play("failed", quiet, there, strangers, named, forgotten)
				play("nothing", quiet, another, strangers, named, forgotten)
				play("cancelled", cancelled, there, strangers, named, forgotten)
			}
		}
	}
}

// Another manager takes the call as it is.
func TestRecordPullIntentOfAnotherManager(t *testing.T) {
	ctx, err := RecordPullIntent(quiet, &pullmanager.NoopImagePullManager{}, "nginx")
	if err != nil || ctx != quiet {
		t.Errorf("%v, %v", ctx, err)
	}
	store, manager := newManager(t, waybill.ModeStrict, &runtimeImages{})
	ctx, err = RecordPullIntent(quiet, manager, "nginx")
	must(t, err)
	// Of another image, and of another manager's, the context says nothing.
	must(t, manager.RecordPullIntent(logr.Discard(), "redis"))
	manager.RecordImagePullFailed(ctx, "redis")
	same(t, "left", openPulls(t, store), []string{"nginx running"})
	_, other := newManager(t, waybill.ModeStrict, &runtimeImages{})
	must(t, other.RecordPullIntent(logr.Discard(), "nginx"))
	other.RecordImagePullFailed(ctx, "nginx")
	same(t, "of the other", openPulls(t, other.store), []string(nil))
	must(t, store.Close())
	if ctx, err := RecordPullIntent(quiet, manager, "nginx"); !errors.Is(err, waybill.ErrClosed) || ctx != quiet {
		t.Errorf("after closing: %v, %v", ctx, err)
	}
}
