package kubelet

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/metadata"
	metadatafake "k8s.io/client-go/metadata/fake"
	"k8s.io/client-go/metadata/metadatainformer"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/cache"
	"waybill.dev/go"
	"waybill.dev/go/store"
)

const privateImage, privateRef = "registry.example/team/app:1", "sha256:1f"

// credential is a Secret (or a service account) of a test: "namespace/name/uid".
type credential struct{ namespace, name, uid string }

func (c credential) meta() metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: c.namespace, Name: c.name, UID: types.UID(c.uid)}
}

func (c credential) metadata(kind string) *metav1.PartialObjectMetadata {
	return &metav1.PartialObjectMetadata{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: kind}, ObjectMeta: c.meta()}
}

// secret has a hash of its own.
func (c credential) secret() waybill.Secret {
	return waybill.Secret{UID: c.uid, Namespace: c.namespace, Name: c.name, Hash: "hash of " + c.namespace + c.name + c.uid}
}

func (c credential) account() waybill.ServiceAccount {
	return waybill.ServiceAccount{UID: c.uid, Namespace: c.namespace, Name: c.name}
}

func ofSecrets(secrets ...credential) (credentials waybill.PulledWith) {
	for _, s := range secrets {
		credentials.Secrets = append(credentials.Secrets, s.secret())
	}
	return credentials
}

func ofAccounts(accounts ...credential) (credentials waybill.PulledWith) {
	for _, a := range accounts {
		credentials.ServiceAccounts = append(credentials.ServiceAccounts, a.account())
	}
	return credentials
}

func prove(t *testing.T, store *store.Store, credentials waybill.PulledWith) {
	t.Helper()
	pulledInto(t, store, waybill.EndPull{Image: privateImage, ImageRef: privateRef, Credentials: &credentials})
}

// opens lists the UIDs of those that may use the image: first of Secrets, then of service accounts.
func opens(t *testing.T, of *store.Store, secrets, accounts []credential) (uids []string) {
	t.Helper()
	copy := store.ImageCopy{Image: privateImage, ImageRef: privateRef}
	for _, s := range secrets {
		if of.Decide(copy, store.PodCredentials{Secrets: []waybill.Secret{s.secret()}}).Use {
			uids = append(uids, s.uid)
		}
	}
	for _, a := range accounts {
		account := a.account()
		if of.Decide(copy, store.PodCredentials{ServiceAccount: &account}).Use {
			uids = append(uids, a.uid)
		}
	}
	return uids
}

// eventually waits for what another goroutine does.
func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); !holds(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("not in a minute: %s", what)
		}
	}
}

// inBackground runs what ends with its context, and waits for its end after the test.
func inBackground(t *testing.T, run func(ctx context.Context) error) {
	t.Helper()
	ctx, cancel := context.WithCancel(quiet)
	done := make(chan error, 1)
	go func() { done <- run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

var (
	kept      = credential{"team-a", "kept", "secret-1"}
	doomed    = credential{"team-a", "doomed", "secret-2"}
	elsewhere = credential{"team-b", "pull", "secret-3"}
	builder   = credential{"team-a", "builder", "account-1"}
	runner    = credential{"team-a", "runner", "account-2"}
	teamA     = credential{name: "team-a", uid: "namespace-1"}
	teamB     = credential{name: "team-b", uid: "namespace-2"}

	allSecrets  = []credential{kept, doomed, elsewhere}
	allAccounts = []credential{builder, runner}
)

// proveAll has all of them open the image.
func proveAll(t *testing.T, store *store.Store) {
	t.Helper()
	prove(t, store, ofSecrets(allSecrets...))
	prove(t, store, ofAccounts(allAccounts...))
	same(t, "open to", opens(t, store, allSecrets, allAccounts), []string{"secret-1", "secret-2", "secret-3", "account-1", "account-2"})
}

// countWatches returns how many watches have begun: what is changed before is in no event of a fake client.
func countWatches(client *metadatafake.FakeMetadataClient) *atomic.Int32 {
	begun := new(atomic.Int32)
	client.PrependWatchReactor("*", func(action clienttesting.Action) (bool, watch.Interface, error) {
		defer begun.Add(1)
		// The tracker knows no types: it would tell both watches of Secrets of each one, and what is
		// deleted would be forgotten twice.
		if action.(clienttesting.WatchAction).GetWatchRestrictions().Fields.String() == "type="+string(v1.SecretTypeDockercfg) {
			return true, watch.NewFake(), nil
		}
		w, err := client.Tracker().Watch(action.GetResource(), action.GetNamespace())
		return true, w, err
	})
	return begun
}

// listenedInformer counts its listeners.
type listenedInformer struct {
	cache.SharedInformer
	listeners *atomic.Int32
}

func (l listenedInformer) AddEventHandler(handler cache.ResourceEventHandler) (cache.ResourceEventHandlerRegistration, error) {
	defer l.listeners.Add(1)
	return l.SharedInformer.AddEventHandler(handler)
}

// newCluster has everything but the Secret that is doomed, and those.
func newCluster(t *testing.T, more ...runtime.Object) *metadatafake.FakeMetadataClient {
	t.Helper()
	scheme := metadatafake.NewTestScheme()
	must(t, metav1.AddMetaToScheme(scheme))
	return metadatafake.NewSimpleMetadataClient(scheme, append(more, kept.metadata("Secret"), elsewhere.metadata("Secret"),
		builder.metadata("ServiceAccount"), runner.metadata("ServiceAccount"), teamA.metadata("Namespace"), teamB.metadata("Namespace"))...)
}

func TestWhatIsDeletedIsForgotten(t *testing.T) {
	for name, watches := range map[string]int32{"ForgetDeleted": 3, "WatchCredentials": 4} {
		store := openTestStore(t, store.Options{})
		proveAll(t, store)
		open := func(want ...string) {
			t.Helper()
			eventually(t, name+": open to what is left", func() bool { return slices.Equal(opens(t, store, allSecrets, allAccounts), want) })
		}
		client := newCluster(t)
		var listeners atomic.Int32
		begun := countWatches(client)
		if name == "WatchCredentials" {
			inBackground(t, func(ctx context.Context) error { return WatchCredentials(ctx, store, client) })
			open("secret-1", "secret-3", "account-1", "account-2") // one was deleted before
			listeners.Store(3)
		} else {
			factory := metadatainformer.NewSharedInformerFactory(client, 0)
			listened := func(resource schema.GroupVersionResource) cache.SharedInformer {
				return listenedInformer{factory.ForResource(resource).Informer(), &listeners}
			}
			of := CredentialInformers{listened(secretsResource), listened(serviceAccountsResource), listened(namespacesResource)}
			inBackground(t, func(ctx context.Context) error {
				factory.Start(ctx.Done())
				defer factory.Shutdown()
				return ForgetDeleted(ctx, store, of)
			})
			eventually(t, "listeners", func() bool { return listeners.Load() == 3 })
			must(t, client.Tracker().Create(secretsResource, doomed.metadata("Secret"), doomed.namespace))
			eventually(t, "watches", func() bool { return begun.Load() == watches })
			must(t, client.Tracker().Delete(secretsResource, doomed.namespace, doomed.name))
			open("secret-1", "secret-3", "account-1", "account-2")
		}
		// What is deleted before it listens, it does not hear of.
		eventually(t, "watches", func() bool { return begun.Load() == watches })
		must(t, client.Tracker().Delete(serviceAccountsResource, "team-a", "runner"))
		open("secret-1", "secret-3", "account-1")
		must(t, client.Tracker().Delete(namespacesResource, "", "team-b"))
		open("secret-1", "account-1")
		// An update that changes no UID forgets nothing; one that does, does.
		must(t, client.Tracker().Update(secretsResource, kept.metadata("Secret"), "team-a"))
		must(t, client.Tracker().Update(serviceAccountsResource, credential{"team-a", "builder", "anew"}.metadata("ServiceAccount"), "team-a"))
		open("secret-1")
		must(t, client.Tracker().Delete(secretsResource, "team-a", "kept"))
		open()
		// A pull that begins later proves anew.
		prove(t, store, ofSecrets(kept))
		open("secret-1")
	}
}

// What an informer makes of events that it missed.
func TestWhatWasMissedIsForgottenWhateverItsUID(t *testing.T) {
	later := credential{"team-a", "doomed", "a later one"}
	all := []credential{doomed, later, elsewhere}
	for name, each := range map[string]struct {
		report func(f *forgetter)
		left   []string
	}{
		"deleted": {func(f *forgetter) {
			f.deleted(waybill.RevokeSecret, cache.DeletedFinalStateUnknown{Key: "team-a/doomed", Obj: doomed.metadata("Secret")})
		}, []string{"secret-3"}},
		"created anew": {func(f *forgetter) {
			f.updated(waybill.RevokeSecret, doomed.metadata("Secret"), credential{"team-a", "doomed", "the newest"}.metadata("Secret"))
		}, []string{"secret-3"}},
		"its namespace": {func(f *forgetter) {
			f.deleted(waybill.RevokeNamespace, cache.DeletedFinalStateUnknown{Key: "team-a"})
		}, []string{"secret-3"}},
		"seen": {func(f *forgetter) { f.deleted(waybill.RevokeSecret, doomed.metadata("Secret")) }, []string{later.uid, "secret-3"}},
		"what can't be read": {func(f *forgetter) {
			f.deleted(waybill.RevokeSecret, "no object")
			f.deleted(waybill.RevokeSecret, cache.DeletedFinalStateUnknown{Key: "a/b/c"})
			f.updated(waybill.RevokeSecret, "no object", doomed.metadata("Secret"))
		}, []string{doomed.uid, later.uid, "secret-3"}},
	} {
		store := openTestStore(t, store.Options{})
		prove(t, store, ofSecrets(all...))
		f := newForgetter(quiet, store)
		each.report(f)
		f.end()
		same(t, name, opens(t, store, all, nil), each.left)
	}
}

func TestWhatTheStoreRefusesIsTriedAgain(t *testing.T) {
	directory := scratchDir(t) + "/store"
	must(t, openTestStore(t, store.Options{Directory: directory}).Close())
	observer, err := store.Observe(directory)
	must(t, err)
	defer observer.Close()
	f := newForgetter(quiet, observer)
	f.deleted(waybill.RevokeSecret, doomed.metadata("Secret"))
	what := waybill.Revoke{Kind: waybill.RevokeSecret, Namespace: "team-a", Name: "doomed", UID: "secret-2"}
	eventually(t, "tried again", func() bool { return f.queue.NumRequeues(what) >= 2 })
	f.end()

	// What can never succeed is not.
	f = newForgetter(quiet, openTestStore(t, store.Options{}))
	nameless := waybill.Revoke{Kind: waybill.RevokeSecret, Namespace: "team-a"}
	f.queue.Add(nameless)
	f.end()
	same(t, "tries", f.queue.NumRequeues(nameless), 0)
}

// Only metadata is asked for, of the whole cluster, and of the Secrets only those that pull images. A truth is asked
// for only when the informers have their lists: a deletion after it is in an event.
func TestWhatIsAskedOfTheCluster(t *testing.T) {
	store := openTestStore(t, store.Options{})
	proveAll(t, store)
	client := newCluster(t)
	var lists atomic.Int32
	client.PrependReactor("list", "namespaces", func(clienttesting.Action) (bool, runtime.Object, error) {
		lists.Add(1)
		return true, nil, apierrors.NewForbidden(namespacesResource.GroupResource(), "", errors.New("no permission"))
	})
	ctx, cancel := context.WithCancel(quiet)
	done := make(chan error, 1)
	go func() { done <- WatchCredentials(ctx, store, client) }()
	eventually(t, "two attempts", func() bool { return lists.Load() >= 2 })
	cancel()
	must(t, <-done)
	same(t, "open to", len(opens(t, store, allSecrets, allAccounts)), 5)
	asked := map[string]bool{}
	for _, action := range client.Actions() {
		if a, ok := action.(clienttesting.ListActionImpl); ok {
			asked[a.Resource.Resource+a.Namespace+" "+a.ListRestrictions.Labels.String()+a.ListRestrictions.Fields.String()] = true
		}
	}
	same(t, "asked", slices.Sorted(maps.Keys(asked)), []string{"namespaces ", "secrets type=kubernetes.io/dockercfg",
		"secrets type=kubernetes.io/dockerconfigjson", "serviceaccounts "})
}

// lists is a cluster that answers by a function: a fake client ignores pages and resource versions.
type lists func(resource string, options metav1.ListOptions) (some []credential, more string, err error)

type listsOf struct {
	metadata.Getter
	resource string
	answer   lists
}

func (l lists) Resource(resource schema.GroupVersionResource) metadata.Getter {
	return listsOf{resource: resource.Resource, answer: l}
}

func (l listsOf) List(_ context.Context, options metav1.ListOptions) (*metav1.PartialObjectMetadataList, error) {
	some, more, err := l.answer(l.resource, options)
	list := &metav1.PartialObjectMetadataList{ListMeta: metav1.ListMeta{Continue: more}}
	for _, one := range some {
		list.Items = append(list.Items, *one.metadata(l.resource))
	}
	return list, err
}

func TestATruthThatIsNoneForgetsNothing(t *testing.T) {
	failed := apierrors.NewResourceExpired("the list is too old")
	ofAccounts := func(some []credential, more string, err error) lists {
		return func(resource string, _ metav1.ListOptions) ([]credential, string, error) {
			if resource == "serviceaccounts" {
				return some, more, err
			}
			return []credential{kept}, "", nil
		}
	}
	ofSecrets := func(some []credential, more string, err error) lists {
		return func(resource string, _ metav1.ListOptions) ([]credential, string, error) {
			if resource == "secrets" {
				return some, more, err
			}
			return allAccounts, "", nil
		}
	}
	for name, cluster := range map[string]lists{
		"no permission":           ofSecrets(nil, "", failed),
		"no service accounts":     ofAccounts(nil, "", nil),
		"a Secret without a name": ofSecrets([]credential{{namespace: "team-a"}}, "", nil),
		"a list without an end":   ofSecrets(slices.Repeat([]credential{kept}, 100_000), "more", nil),
		"the second page fails": func(resource string, options metav1.ListOptions) ([]credential, string, error) {
			if resource == "serviceaccounts" && options.Continue != "" {
				return nil, "", failed
			}
			return allAccounts[:1], map[string]string{"serviceaccounts": "more"}[resource], nil
		},
	} {
		store := openTestStore(t, store.Options{})
		proveAll(t, store)
		if err := reconcile(quiet, store, cluster); err == nil {
			t.Errorf("%s: taken for a truth", name)
		}
		same(t, name, len(opens(t, store, allSecrets, allAccounts)), 5)
	}
}

// All pages of a list count, and what is proven while it is made is newer than the list.
func TestATruthHasItsPlaceInTime(t *testing.T) {
	store := openTestStore(t, store.Options{})
	secrets := make([]credential, 1200)
	for i := range secrets {
		secrets[i] = credential{"team-a", "s" + strconv.Itoa(i), "secret " + strconv.Itoa(i)}
	}
	old, first, last := credential{"team-a", "old", "of old"}, secrets[0], secrets[len(secrets)-1]
	prove(t, store, ofSecrets(old, first, last))
	created := credential{"team-a", "created", "meanwhile"}
	pages := 0
	must(t, reconcile(quiet, store, lists(func(resource string, options metav1.ListOptions) ([]credential, string, error) {
		if options.ResourceVersion != "" || options.LabelSelector != "" || (resource == "secrets") != strings.HasPrefix(options.FieldSelector, "type=kubernetes.io/dockerc") {
			t.Errorf("not all of the newest state: %+v", options)
		}
		if resource == "serviceaccounts" {
			return allAccounts, "", nil
		}
		from, _ := strconv.Atoi(options.Continue)
		if pages++; from == 0 {
			prove(t, store, ofSecrets(created))
		}
		to := from + int(options.Limit)
		if to < len(secrets) {
			return secrets[from:to], strconv.Itoa(to), nil
		}
		return secrets[from:], "", nil
	})))
	if pages < 6 {
		t.Errorf("%d pages of two lists", pages)
	}
	same(t, "open to", opens(t, store, []credential{old, first, last, created}, nil), []string{first.uid, last.uid, created.uid})
}

func TestTruthsComeHourlyAndSoonerAfterErrorsAndGaps(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(quiet)
		defer cancel()
		gap, truths := make(chan struct{}, 1), make(chan time.Time, 100)
		var failing atomic.Bool
		go keepTruth(ctx, truthTimes{betweenTruths, afterFailure, afterGap}, gap, func() error {
			truths <- time.Now()
			if failing.Load() {
				return errors.New("the API server is away")
			}
			return nil
		})
		last := <-truths
		next := func(what string, from, to time.Duration) {
			t.Helper()
			at := <-truths
			if d := at.Sub(last); d < from || d > to {
				t.Errorf("%s: not between %v and %v: %v", what, from, to, d)
			}
			last = at
		}
		for range 8 {
			next("hourly", time.Hour, 90*time.Minute)
		}
		gap <- struct{}{}
		next("after a gap", time.Minute, 5*time.Minute)
		failing.Store(true)
		next("hourly", time.Hour, 90*time.Minute)
		for failure := 10 * time.Second; failure < 4*time.Hour; failure *= 2 {
			next("after a failure", min(failure, time.Hour), min(failure, time.Hour)*3/2)
		}
		failing.Store(false)
		next("after a failure", time.Hour, 90*time.Minute)
		next("hourly again", time.Hour, 90*time.Minute)
		cancel()
		time.Sleep(12 * time.Hour)
		same(t, "after the end", len(truths), 0)
	})
}

func TestForgettingWrongUse(t *testing.T) {
	client := newCluster(t)
	closed := openTestStore(t, store.Options{})
	if err := WatchCredentials(quiet, closed, nil); err == nil {
		t.Error("a nil client was taken")
	}
	directory := scratchDir(t) + "/store"
	must(t, openTestStore(t, store.Options{Directory: directory}).Close())
	observer, err := store.Observe(directory)
	must(t, err)
	defer observer.Close()
	must(t, closed.Close())
	for _, each := range []struct {
		store *store.Store
		want  error
	}{{nil, errNilStore}, {closed, waybill.ErrClosed}, {observer, waybill.ErrNotOwner}} {
		if err := WatchCredentials(quiet, each.store, client); !errors.Is(err, each.want) {
			t.Errorf("%v, not %v", err, each.want)
		}
		if err := ForgetDeleted(quiet, each.store, CredentialInformers{}); !errors.Is(err, each.want) {
			t.Errorf("%v, not %v", err, each.want)
		}
	}
}
