package kubelet

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"sync"
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
	"k8s.io/client-go/informers"
	clientset "k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/metadata"
	metadatafake "k8s.io/client-go/metadata/fake"
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

// countWatches returns how many watches have begun, by resource: what is changed before is in no event
// of a fake client.
func countWatches(fake *clienttesting.Fake, tracker clienttesting.ObjectTracker) *atomic.Int32 {
	begun := new(atomic.Int32)
	fake.PrependWatchReactor("*", func(action clienttesting.Action) (bool, watch.Interface, error) {
		w, err := tracker.Watch(action.GetResource(), action.GetNamespace())
		begun.Add(1)
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

func TestWhatIsDeletedIsForgotten(t *testing.T) {
	store := openTestStore(t, store.Options{})
	proveAll(t, store)
	client := clientset.NewClientset(
		&v1.Secret{ObjectMeta: kept.meta()}, &v1.Secret{ObjectMeta: doomed.meta()}, &v1.Secret{ObjectMeta: elsewhere.meta()},
		&v1.ServiceAccount{ObjectMeta: builder.meta()}, &v1.ServiceAccount{ObjectMeta: runner.meta()},
		&v1.Namespace{ObjectMeta: teamA.meta()}, &v1.Namespace{ObjectMeta: teamB.meta()})
	begun := countWatches(&client.Fake, client.Tracker())
	factory := informers.NewSharedInformerFactory(client, 0)
	of := InformersOf(factory)
	var listeners atomic.Int32
	for _, informer := range []*cache.SharedInformer{&of.Secrets, &of.ServiceAccounts, &of.Namespaces} {
		*informer = listenedInformer{*informer, &listeners}
	}
	inBackground(t, func(ctx context.Context) error {
		factory.StartWithContext(ctx)
		defer factory.Shutdown()
		return ForgetDeleted(ctx, store, of)
	})
	// What is deleted before it listens, it does not hear of.
	eventually(t, "three watches and listeners", func() bool { return begun.Load() == 3 && listeners.Load() == 3 })
	open := func(want ...string) {
		t.Helper()
		eventually(t, "open to what is left", func() bool { return slices.Equal(opens(t, store, allSecrets, allAccounts), want) })
	}
	core := client.CoreV1()
	must(t, core.Secrets("team-a").Delete(quiet, "doomed", metav1.DeleteOptions{}))
	open("secret-1", "secret-3", "account-1", "account-2")
	must(t, core.ServiceAccounts("team-a").Delete(quiet, "runner", metav1.DeleteOptions{}))
	open("secret-1", "secret-3", "account-1")
	must(t, core.Namespaces().Delete(quiet, "team-b", metav1.DeleteOptions{}))
	open("secret-1", "account-1")

	// An update that changes no UID forgets nothing; one that does, does.
	changed, err := core.Secrets("team-a").Update(quiet, &v1.Secret{ObjectMeta: kept.meta(), Data: map[string][]byte{"a": {1}}}, metav1.UpdateOptions{})
	must(t, err)
	_, err = core.ServiceAccounts("team-a").Update(quiet, &v1.ServiceAccount{ObjectMeta: credential{"team-a", "builder", "anew"}.meta()}, metav1.UpdateOptions{})
	must(t, err)
	open("secret-1")
	changed.UID = "anew"
	_, err = core.Secrets("team-a").Update(quiet, changed, metav1.UpdateOptions{})
	must(t, err)
	open()
	// A pull that begins later proves anew.
	prove(t, store, ofSecrets(kept))
	open("secret-1")
}

// What an informer makes of events that it missed.
func TestWhatWasMissedIsForgottenWhateverItsUID(t *testing.T) {
	later := credential{"team-a", "doomed", "a later one"}
	for name, report := range map[string]func(f *forgetter){
		"deleted": func(f *forgetter) {
			f.deleted(waybill.RevokeSecret, cache.DeletedFinalStateUnknown{Key: "team-a/doomed", Obj: doomed.metadata("Secret")})
		},
		"deleted, of unknown state": func(f *forgetter) {
			f.deleted(waybill.RevokeSecret, cache.DeletedFinalStateUnknown{Key: "team-a/doomed"})
		},
		"created anew": func(f *forgetter) {
			f.updated(waybill.RevokeSecret, doomed.metadata("Secret"), credential{"team-a", "doomed", "the newest"}.metadata("Secret"))
		},
		"its namespace": func(f *forgetter) {
			f.deleted(waybill.RevokeNamespace, cache.DeletedFinalStateUnknown{Key: "team-a"})
			prove(t, f.store, ofSecrets(elsewhere))
		},
	} {
		store := openTestStore(t, store.Options{})
		prove(t, store, ofSecrets(doomed, later, elsewhere))
		f := newForgetter(quiet, store)
		report(f)
		f.deleted(waybill.RevokeSecret, "no object")
		f.deleted(waybill.RevokeSecret, cache.DeletedFinalStateUnknown{Key: "a/b/c"})
		f.updated(waybill.RevokeSecret, "no object", doomed.metadata("Secret"))
		f.end()
		same(t, name, opens(t, store, []credential{doomed, later, elsewhere}, nil), []string{"secret-3"})
	}
	// A deletion that was seen is of one UID.
	store := openTestStore(t, store.Options{})
	prove(t, store, ofSecrets(doomed, later))
	f := newForgetter(quiet, store)
	f.deleted(waybill.RevokeSecret, doomed.metadata("Secret"))
	f.end()
	same(t, "seen", opens(t, store, []credential{doomed, later}, nil), []string{later.uid})
}

func TestWhatTheStoreRefusesIsTriedAgain(t *testing.T) {
	directory := scratchDir(t) + "/store"
	must(t, openTestStore(t, store.Options{Directory: directory}).Close())
	observer, err := store.Observe(directory, waybill.Settings{})
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

func newCluster(t *testing.T, objects ...runtime.Object) *metadatafake.FakeMetadataClient {
	t.Helper()
	scheme := metadatafake.NewTestScheme()
	must(t, metav1.AddMetaToScheme(scheme))
	return metadatafake.NewSimpleMetadataClient(scheme, objects...)
}

// wholeCluster has everything but the Secret that is doomed.
func wholeCluster(t *testing.T) *metadatafake.FakeMetadataClient {
	return newCluster(t, kept.metadata("Secret"), elsewhere.metadata("Secret"), builder.metadata("ServiceAccount"),
		runner.metadata("ServiceAccount"), teamA.metadata("Namespace"), teamB.metadata("Namespace"))
}

func TestWatchCredentials(t *testing.T) {
	store := openTestStore(t, store.Options{})
	proveAll(t, store)
	client := wholeCluster(t)
	begun := countWatches(&client.Fake, client.Tracker())
	inBackground(t, func(ctx context.Context) error { return WatchCredentials(ctx, store, client) })
	open := func(want ...string) {
		t.Helper()
		eventually(t, "open to what is left", func() bool { return slices.Equal(opens(t, store, allSecrets, allAccounts), want) })
	}
	open("secret-1", "secret-3", "account-1", "account-2") // one was deleted before
	eventually(t, "four watches", func() bool { return begun.Load() == 4 })
	must(t, client.Tracker().Delete(secretsResource, "team-a", "kept"))
	open("secret-3", "account-1", "account-2")
	must(t, client.Tracker().Delete(serviceAccountsResource, "team-a", "builder"))
	open("secret-3", "account-2")
	must(t, client.Tracker().Delete(namespacesResource, "", "team-b"))
	open("account-2")

	// Only metadata, and of the Secrets only those that pull images.
	types := map[string]bool{}
	for _, action := range client.Actions() {
		switch a := action.(type) {
		case clienttesting.ListActionImpl:
			if a.Resource == secretsResource {
				types["list "+a.ListRestrictions.Fields.String()] = true
			}
			if a.Namespace != "" || !a.ListRestrictions.Labels.Empty() {
				t.Errorf("a part of the cluster: %+v", a)
			}
		case clienttesting.WatchActionImpl:
			if a.Resource == secretsResource {
				types["watch "+a.WatchRestrictions.Fields.String()] = true
			}
		}
	}
	for _, verb := range []string{"list ", "watch "} {
		for _, secretType := range []string{"kubernetes.io/dockerconfigjson", "kubernetes.io/dockercfg"} {
			if !types[verb+"type="+secretType] {
				t.Errorf("not asked for: %s %s", verb, secretType)
			}
		}
	}
	same(t, "kinds of questions", len(types), 4)
}

// A truth is asked for only when the informers have their lists: a deletion after it is in an event.
func TestNoTruthBeforeTheInformersAreInStep(t *testing.T) {
	store := openTestStore(t, store.Options{})
	proveAll(t, store)
	client := wholeCluster(t)
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
	if err := <-done; err != nil {
		t.Error(err)
	}
	same(t, "open to", len(opens(t, store, allSecrets, allAccounts)), 5)
}

func TestATruthThatIsNoneForgetsNothing(t *testing.T) {
	for name, spoil := range map[string]func(client *metadatafake.FakeMetadataClient){
		"no permission for Secrets": func(client *metadatafake.FakeMetadataClient) {
			client.PrependReactor("list", "secrets", func(clienttesting.Action) (bool, runtime.Object, error) {
				return true, nil, apierrors.NewForbidden(secretsResource.GroupResource(), "", errors.New("no permission"))
			})
		},
		"no service accounts": func(client *metadatafake.FakeMetadataClient) {
			for _, account := range allAccounts {
				_ = client.Tracker().Delete(serviceAccountsResource, account.namespace, account.name)
			}
		},
		"nothing at all": func(client *metadatafake.FakeMetadataClient) {
			client.PrependReactor("list", "*", func(clienttesting.Action) (bool, runtime.Object, error) {
				return true, &metav1.List{}, nil
			})
		},
		"the second page fails": func(client *metadatafake.FakeMetadataClient) {
			pages := 0
			client.PrependReactor("list", "serviceaccounts", func(clienttesting.Action) (bool, runtime.Object, error) {
				if pages++; pages > 1 {
					return true, nil, apierrors.NewResourceExpired("the list is too old")
				}
				list := &metav1.List{ListMeta: metav1.ListMeta{Continue: "more"}}
				list.Items = append(list.Items, runtime.RawExtension{Object: builder.metadata("ServiceAccount")})
				return true, list, nil
			})
		},
		"a Secret without a name": func(client *metadatafake.FakeMetadataClient) {
			client.PrependReactor("list", "secrets", func(clienttesting.Action) (bool, runtime.Object, error) {
				list := &metav1.List{}
				list.Items = append(list.Items, runtime.RawExtension{Object: credential{namespace: "team-a"}.metadata("Secret")})
				return true, list, nil
			})
		},
	} {
		store := openTestStore(t, store.Options{})
		proveAll(t, store)
		client := wholeCluster(t)
		spoil(client)
		if err := reconcile(quiet, store, client); err == nil {
			t.Errorf("%s: taken for a truth", name)
		}
		same(t, name, len(opens(t, store, allSecrets, allAccounts)), 5)
	}
	store := openTestStore(t, store.Options{})
	proveAll(t, store)
	ctx, cancel := context.WithCancel(quiet)
	cancel()
	if err := reconcile(ctx, store, wholeCluster(t)); !errors.Is(err, context.Canceled) {
		t.Errorf("after the end: %v", err)
	}
	same(t, "after the end", len(opens(t, store, allSecrets, allAccounts)), 5)
}

// pagedCluster answers lists by a function: a fake client ignores pages and resource versions.
type pagedCluster struct {
	metadata.Interface
	list func(resource string, options metav1.ListOptions) (*metav1.PartialObjectMetadataList, error)
}

type pagedResource struct {
	metadata.Getter
	name string
	list func(resource string, options metav1.ListOptions) (*metav1.PartialObjectMetadataList, error)
}

func (c pagedCluster) Resource(resource schema.GroupVersionResource) metadata.Getter {
	return pagedResource{c.Interface.Resource(resource), resource.Resource, c.list}
}

func (r pagedResource) List(_ context.Context, options metav1.ListOptions) (*metav1.PartialObjectMetadataList, error) {
	return r.list(r.name, options)
}

// All pages of a list count, and what is proven while it is made is newer than the list.
func TestATruthHasItsPlaceInTime(t *testing.T) {
	store := openTestStore(t, store.Options{})
	const many = 1200
	secrets := make([]credential, many)
	for i := range secrets {
		secrets[i] = credential{"team-a", "s" + strconv.Itoa(i), "secret " + strconv.Itoa(i)}
	}
	old, first, last := credential{"team-a", "old", "of old"}, secrets[0], secrets[many-1]
	prove(t, store, ofSecrets(old, first, last))
	created := credential{"team-a", "created", "meanwhile"}
	pages := 0
	client := pagedCluster{newCluster(t), func(resource string, options metav1.ListOptions) (*metav1.PartialObjectMetadataList, error) {
		if options.ResourceVersion != "" || options.LabelSelector != "" {
			t.Errorf("not all of the newest state: %+v", options)
		}
		if resource == "serviceaccounts" {
			return &metav1.PartialObjectMetadataList{Items: []metav1.PartialObjectMetadata{*builder.metadata("ServiceAccount")}}, nil
		}
		from, _ := strconv.Atoi(options.Continue)
		if pages++; from == 0 {
			prove(t, store, ofSecrets(created))
		}
		list := &metav1.PartialObjectMetadataList{}
		to := min(from+int(options.Limit), many)
		for _, s := range secrets[from:to] {
			list.Items = append(list.Items, *s.metadata("Secret"))
		}
		if to < many {
			list.Continue = strconv.Itoa(to)
		}
		return list, nil
	}}
	must(t, reconcile(quiet, store, client))
	if pages < 6 {
		t.Errorf("%d pages of two lists", pages)
	}
	same(t, "open to", opens(t, store, []credential{old, first, last, created}, nil), []string{first.uid, last.uid, created.uid})
}

// A server that has always one more page.
func TestAListWithoutAnEndIsGivenUp(t *testing.T) {
	store := openTestStore(t, store.Options{})
	proveAll(t, store)
	page := &metav1.PartialObjectMetadataList{ListMeta: metav1.ListMeta{Continue: "more"}}
	for range 100_000 {
		page.Items = append(page.Items, *kept.metadata("Secret"))
	}
	client := pagedCluster{newCluster(t), func(string, metav1.ListOptions) (*metav1.PartialObjectMetadataList, error) { return page, nil }}
	if err := reconcile(quiet, store, client); err == nil {
		t.Error("taken for a truth")
	}
	same(t, "open to", len(opens(t, store, allSecrets, allAccounts)), 5)
}

func TestTruthsComeHourlyAndSoonerAfterErrorsAndGaps(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(quiet)
		defer cancel()
		gap := make(chan struct{}, 1)
		begun := time.Now()
		var mu sync.Mutex // for the race detector, which does not know that no two run at once
		var truths []time.Duration
		var failing error
		go keepTruth(ctx, truthTimes{betweenTruths, afterFailure, afterGap}, gap, func() error {
			mu.Lock()
			defer mu.Unlock()
			truths = append(truths, time.Since(begun))
			return failing
		})
		fail := func(err error) {
			mu.Lock()
			defer mu.Unlock()
			failing = err
		}
		// sleep returns when there were truths until then.
		sleep := func(d time.Duration) []time.Duration {
			time.Sleep(d)
			synctest.Wait()
			mu.Lock()
			defer mu.Unlock()
			return slices.Clone(truths)
		}
		between := func(what string, d, from, to time.Duration) {
			t.Helper()
			if d < from || d > to {
				t.Errorf("%s: not between %v and %v: %v", what, from, to, d)
			}
		}
		at := sleep(12 * time.Hour)
		same(t, "at once", at[0], time.Duration(0))
		for i := 1; i < len(at); i++ {
			between("hourly", at[i]-at[i-1], time.Hour, 90*time.Minute)
		}
		if len(at) < 8 {
			t.Errorf("%d in 12 hours", len(at))
		}

		// Just after a truth: the next regular one is far away.
		count := len(at)
		for i := 0; len(at) == count && i < 91; i++ {
			at = sleep(time.Minute)
		}
		count = len(at)
		now := time.Since(begun)
		gap <- struct{}{}
		at = sleep(5 * time.Minute)
		if len(at) != count+1 {
			t.Fatalf("after a gap: %v", at[count:])
		}
		between("after a gap", at[count]-now, time.Minute, 5*time.Minute)

		fail(errors.New("the API server is away"))
		first := len(at)
		at = sleep(12 * time.Hour)
		failure := 10 * time.Second
		for i := first + 1; i < len(at); i++ {
			between("after a failure", at[i]-at[i-1], failure, failure*3/2)
			failure = min(2*failure, time.Hour)
		}
		if len(at) < first+10 {
			t.Errorf("%d in 12 hours of failures", len(at)-first)
		}
		fail(nil)
		last := len(at)
		at = sleep(6 * time.Hour)
		for i := last + 1; i < len(at); i++ {
			between("hourly again", at[i]-at[i-1], time.Hour, 90*time.Minute)
		}
		cancel()
		count = len(sleep(0))
		same(t, "after the end", len(sleep(12*time.Hour)), count)
	})
}

func TestForgettingWrongUse(t *testing.T) {
	client := wholeCluster(t)
	closed := openTestStore(t, store.Options{})
	if err := WatchCredentials(quiet, closed, nil); err == nil {
		t.Error("a nil client was taken")
	}
	directory := scratchDir(t) + "/store"
	must(t, openTestStore(t, store.Options{Directory: directory}).Close())
	observer, err := store.Observe(directory, waybill.Settings{})
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
