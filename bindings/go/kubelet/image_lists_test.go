package kubelet

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"runtime"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	featuregatetesting "k8s.io/component-base/featuregate/testing"
	"k8s.io/kubernetes/pkg/features"
	kubecontainer "k8s.io/kubernetes/pkg/kubelet/container"
	"waybill.dev/go"
	"waybill.dev/go/store"
)

// openPulls are the open pulls of a store, in words.
func openPulls(t *testing.T, store *store.Store) (words []string) {
	t.Helper()
	listed, err := store.ListPulls(quiet, waybill.ListPulls{})
	must(t, err)
	for _, pull := range listed.Pulls {
		words = append(words, pull.Image+" "+string(pull.State))
	}
	return words
}

func same(t *testing.T, what string, got, want any) {
	t.Helper()
	if g, w := fmt.Sprint(got), fmt.Sprint(want); g != w {
		t.Errorf("%s: %s, not %s", what, g, w)
	}
}

const pause = "registry.example/base/pause:3.10"

// inBubble runs a test in which time passes only where it says so.
func inBubble(t *testing.T, body func(t *testing.T, newManager func(images kubecontainer.ImageService) *ImagePullManager)) {
	directory := scratchDir(t)
	synctest.Test(t, func(t *testing.T) {
		body(t, func(images kubecontainer.ImageService) *ImagePullManager {
			manager, err := NewImagePullManager(openTestStore(t, store.Options{Directory: filepath.Join(directory, "store")}), images)
			must(t, err)
			return manager
		})
	})
}

func listedAs(id string, names ...string) kubecontainer.Image {
	return kubecontainer.Image{ID: id, RepoTags: names}
}

func TestAMissAsksTheRuntime(t *testing.T) {
	images := &runtimeImages{images: []kubecontainer.Image{listedAs("sha256:aa", pause)}}
	_, manager := newManager(t, waybill.ModeStrict, images)
	before := readLabels()
	for range 3 {
		if mustPull(t, manager, pause, "sha256:aa", neverAsked(t)) {
			t.Error("a preloaded image is to be pulled")
		}
	}
	same(t, "lists", images.listed, 1)
	counted := readLabels()
	for i := range counted {
		counted[i] -= before[i]
	}
	same(t, "counted, the second answer only", counted, [4]float64{3, 0, 0, 0})
}

func TestAListThatShowsNothingNewCommitsNothing(t *testing.T) {
	images := &runtimeImages{images: []kubecontainer.Image{listedAs("sha256:aa", pause)}}
	store, manager := newManager(t, waybill.ModeStrict, images)
	commits := func() int64 {
		status, err := store.GetStatus(quiet, waybill.GetStatus{})
		must(t, err)
		return status.Commit
	}
	// As the kubelet's garbage collection does every few minutes.
	collect := func() { manager.PruneUnknownRecords(context.Background(), []string{"sha256:aa"}, time.Now()) }
	collect()
	collect()
	before := commits()
	for range 12 {
		collect()
	}
	same(t, "lists", images.listed, 14)
	same(t, "commits", commits(), before)
}

// What arrives just after a list is not refused: who asks for it waits for the next one, a second later, with all
// others.
func TestAMissWaitsForItsTurn(t *testing.T) {
	const image = "registry.example/base/new:1"
	inBubble(t, func(t *testing.T, newManager func(images kubecontainer.ImageService) *ImagePullManager) {
		images := &runtimeImages{images: []kubecontainer.Image{listedAs("sha256:aa", pause)}}
		manager := newManager(images)
		same(t, "pull", mustPull(t, manager, pause, "sha256:aa", neverAsked(t)), false)
		images.images = append(images.images, listedAs("sha256:bb", image))
		goroutines := runtime.NumGoroutine()
		cancelled, cancel := context.WithCancel(quiet)
		images.during = func(ctx context.Context) {
			if ctx.Err() != nil {
				t.Error("the list ended with its first caller")
			}
		}
		begun := time.Now()
		var all, given sync.WaitGroup
		for range 10 {
			given.Go(func() {
				if pull, err := manager.MustAttemptImagePull(cancelled, image, "sha256:bb", neverAsked(t)); !pull || err != nil {
					t.Errorf("a decision that was cancelled: %t, %v", pull, err)
				}
			})
			synctest.Wait() // the first caller is one that is cancelled
			all.Go(func() { same(t, "pull", mustPull(t, manager, image, "sha256:bb", neverAsked(t)), false) })
		}
		synctest.Wait()
		if more := runtime.NumGoroutine() - goroutines; more > 21 { // those, and the list
			t.Errorf("%d goroutines for 20 that wait", more)
		}
		cancel()
		given.Wait()
		same(t, "waited after the end of the context", time.Since(begun), time.Duration(0))
		all.Wait()
		same(t, "lists", images.listed, 2)
		same(t, "waited", time.Since(begun), time.Second)
	})
}

// A list that was under way may have been made before the image came.
func TestAMissIsNotRefusedByAListThatBeganBefore(t *testing.T) {
	const image = "registry.example/base/new:1"
	inBubble(t, func(t *testing.T, newManager func(images kubecontainer.ImageService) *ImagePullManager) {
		images := &runtimeImages{images: []kubecontainer.Image{listedAs("sha256:aa", pause)}}
		manager := newManager(images)
		images.during = func(context.Context) { time.Sleep(3 * time.Second) }
		go manager.PruneUnknownRecords(quiet, nil, time.Now())
		time.Sleep(time.Second)
		synctest.Wait() // it was made
		images.images = append(images.images, listedAs("sha256:bb", image))
		same(t, "pull", mustPull(t, manager, image, "sha256:bb", neverAsked(t)), false)
	})
}

func TestAListThatFailsOrIsEmptyChangesNothing(t *testing.T) {
	for name, images := range map[string]*runtimeImages{"fails": {err: errors.New("the runtime is away")}, "is empty": {}} {
		store, manager := newManager(t, waybill.ModeStrict, images)
		_, err := store.AllowImage(quiet, waybill.AllowImage{Image: waybill.ListedImage{ID: "sha256:aa", RepoTags: []string{pause}}, Source: "test", Reason: "it is the test's"})
		must(t, err)
		if !mustPull(t, manager, "registry.example/a:1", "sha256:unknown", neverAsked(t)) {
			t.Errorf("%s: an image that nothing is known of is open", name)
		}
		pullWith(t, manager, "registry.example/a:1", "sha256:bb", secretOf("a"))
		manager.PruneUnknownRecords(quiet, nil, time.Now())
		if mustPull(t, manager, pause, "sha256:aa", neverAsked(t)) || mustPull(t, manager, "registry.example/a:1", "sha256:bb", credentialsOf(secretOf("a"))) {
			t.Errorf("%s: what was known is not any more", name)
		}
	}
}

// What is on the node before the first pull was not brought by it.
func TestTheFirstPullListsBeforeItBegins(t *testing.T) {
	images := &runtimeImages{images: []kubecontainer.Image{listedAs("sha256:aa", pause)}}
	store, manager := newManager(t, waybill.ModeStrict, images)
	images.during = func(context.Context) { same(t, "open pulls", openPulls(t, store), []string(nil)) }
	for range 2 {
		must(t, manager.RecordPullIntent(logr.Discard(), pause))
	}
	same(t, "lists", images.listed, 1)
	if mustPull(t, manager, pause, "sha256:aa", neverAsked(t)) {
		t.Error("a tenant who pulls a preloaded image closes it")
	}
}

func TestTheFirstPullDoesNotWaitForARuntimeThatIsAway(t *testing.T) {
	inBubble(t, func(t *testing.T, newManager func(images kubecontainer.ImageService) *ImagePullManager) {
		images := &runtimeImages{err: errors.New("the runtime is away")}
		manager := newManager(images)
		for range 3 {
			must(t, manager.RecordPullIntent(logr.Discard(), "registry.example/a:1"))
		}
		same(t, "lists of one moment", images.listed, 1)
		time.Sleep(2 * time.Second)
		images.err, images.images = nil, []kubecontainer.Image{listedAs("sha256:aa", pause)}
		for range 3 {
			must(t, manager.RecordPullIntent(logr.Discard(), "registry.example/a:1"))
		}
		same(t, "lists", images.listed, 2)
	})
}

func TestAFailedPullAsksTheRuntimeForTheImage(t *testing.T) {
	const image = "registry.example/team/app"
	away := errors.New("the runtime is away")
	cancelled, cancel := context.WithCancel(quiet)
	cancel()
	for name, c := range map[string]struct {
		ctx    context.Context
		images []kubecontainer.Image
		err    error
		want   []string
	}{
		"absent":              {ctx: quiet},
		"another is there":    {ctx: quiet, images: []kubecontainer.Image{listedAs("sha256:bb", image+":2")}},
		"there":               {ctx: quiet, images: []kubecontainer.Image{listedAs("sha256:aa", image+":latest")}, want: []string{image + " failed"}},
		"the runtime is away": {ctx: quiet, err: away, want: []string{image + " unknown"}},
		"cancelled":           {ctx: cancelled, want: []string{image + " unknown"}},
	} {
		store, manager := newManager(t, waybill.ModeStrict, &runtimeImages{images: c.images, err: c.err})
		must(t, manager.RecordPullIntent(logr.Discard(), image))
		manager.RecordImagePullFailed(c.ctx, image)
		same(t, name, openPulls(t, store), c.want)
	}

	// The kubelet does not say for which runtime handler it pulled.
	featuregatetesting.SetFeatureGateDuringTest(t, utilfeature.DefaultFeatureGate, features.RuntimeClassInImageCriAPI, true)
	store, manager := newManager(t, waybill.ModeStrict, &runtimeImages{})
	must(t, manager.RecordPullIntent(logr.Discard(), image))
	manager.RecordImagePullFailed(quiet, image)
	same(t, "with handlers", openPulls(t, store), []string{image + " failed"})
}

// A restart ends what ran, also if the runtime lists nothing yet.
func TestOpenStoreIsARestart(t *testing.T) {
	const image, byHand = "registry.example/team/app:1", "registry.example/base/by-hand:1"
	n := newSwappedNode(t, waybill.ModeStrict)
	inside := n.inside()
	if r := opening(t, n.store); !r.FirstStart {
		t.Errorf("%+v", r)
	}
	n.opens("of the first start", inside, pause, idOf('0'), "b", true)
	must(t, inside.RecordPullIntent(logr.Discard(), image))
	must(t, n.store.Close())
	n.brings(idOf('b'), image)
	n.brings(idOf('c'), byHand)
	inside = n.inside()
	same(t, "open pulls", openPulls(t, n.store), []string{image + " unknown"})
	n.opens("a pull that was cut off", inside, image, idOf('b'), "b", false)
	n.opens("a pull that was cut off", inside, idOf('b'), idOf('b'), "b", false)
	n.opens("by hand", inside, byHand, idOf('c'), "b", true)
	must(t, n.store.Close())
	n.runtime.images, n.runtime.err = nil, errors.New("the runtime is away")
	n.opens("without a list", n.inside(), pause, idOf('0'), "b", true)
}

// lockedImages needs a lock for each answer.
type lockedImages struct {
	runtimeImages
	lock chan struct{}
}

func (l *lockedImages) ListImages(ctx context.Context) ([]kubecontainer.Image, error) {
	l.lock <- struct{}{}
	defer func() { <-l.lock }()
	return l.runtimeImages.ListImages(ctx)
}

func (l *lockedImages) GetImageRef(ctx context.Context, spec kubecontainer.ImageSpec) (string, error) {
	l.lock <- struct{}{}
	defer func() { <-l.lock }()
	return l.runtimeImages.GetImageRef(ctx, spec)
}

// A caller may hold a lock that the image service needs: decisions and pulls go on without an answer.
func TestACallersLockStopsNoDecision(t *testing.T) {
	const image = "registry.example/team/app:1"
	inBubble(t, func(t *testing.T, newManager func(images kubecontainer.ImageService) *ImagePullManager) {
		images := &lockedImages{lock: make(chan struct{}, 1)}
		images.images = []kubecontainer.Image{listedAs("sha256:aa", pause)}
		manager := newManager(images)
		images.lock <- struct{}{}
		if !mustPull(t, manager, pause, "sha256:aa", neverAsked(t)) {
			t.Error("open without a list")
		}
		must(t, manager.RecordPullIntent(logr.Discard(), image))
		manager.RecordImagePullFailed(quiet, image)
		same(t, "open pulls", openPulls(t, manager.store), []string{image + " unknown"})
		<-images.lock
		synctest.Wait() // the list that began before all pulls counts
		if mustPull(t, manager, pause, "sha256:aa", neverAsked(t)) {
			t.Error("a preloaded image is to be pulled")
		}
	})
}
