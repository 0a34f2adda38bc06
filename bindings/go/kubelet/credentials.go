package kubelet

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/metadata/metadatainformer"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/pager"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/klog/v2"
	"waybill.dev/go"
	"waybill.dev/go/store"
)

const (
	// Between two truths, and up to half as much more.
	betweenTruths = time.Hour
	// After a truth could not be had. Doubles until betweenTruths.
	afterFailure = 10 * time.Second
	// After a watch broke: no event tells of a Secret that was created and deleted meanwhile. By then
	// the informer has listed again, and not every node of a cluster asks at the same moment.
	afterGap = time.Minute
	// The API server has this long for all pages.
	truthTimeout = 5 * time.Minute
	// The store takes this many of both together; a longer list is given up.
	maxTruth = 1_000_000
	// Between two attempts to forget the same; doubles.
	retryAtFirst, retryAtLast = time.Second, 5 * time.Minute
)

var (
	secretsResource         = v1.SchemeGroupVersion.WithResource("secrets")
	serviceAccountsResource = v1.SchemeGroupVersion.WithResource("serviceaccounts")
	namespacesResource      = v1.SchemeGroupVersion.WithResource("namespaces")

	// Of the Secrets those of the types that a kubelet pulls with. A Secret's type never changes.
	watchedResources = []watchedResource{
		{secretsResource, waybill.RevokeSecret, "type=" + string(v1.SecretTypeDockerConfigJson)},
		{secretsResource, waybill.RevokeSecret, "type=" + string(v1.SecretTypeDockercfg)},
		{serviceAccountsResource, waybill.RevokeServiceAccount, ""},
		{namespacesResource, waybill.RevokeNamespace, ""},
	}
)

type watchedResource struct {
	schema.GroupVersionResource
	kind     waybill.RevocationKind
	selector string
}

// CredentialInformers are informers of all or of some Secrets, service accounts and namespaces, of
// whole objects or of their metadata. nil: not watched. They tell what was deleted, and never what
// exists: a Secret that an informer's cache lacks may exist, since the cache may still be empty, be
// old, or be restricted to a part of the cluster, such as the pods of one node.
type CredentialInformers struct {
	Secrets, ServiceAccounts, Namespaces cache.SharedInformer
}

// InformersOf returns the factory's three informers. Start the factory after [ForgetDeleted] was
// called, or before. Its informer of Secrets keeps their content in memory, unless the factory has a
// transform that drops it.
func InformersOf(factory informers.SharedInformerFactory) CredentialInformers {
	core := factory.Core().V1()
	return CredentialInformers{
		Secrets:         core.Secrets().Informer(),
		ServiceAccounts: core.ServiceAccounts().Informer(),
		Namespaces:      core.Namespaces().Informer(),
	}
}

// ForgetDeleted forgets what the informers say was deleted, until ctx ends: a Secret or a service
// account by its namespace, name and UID ([waybill.Revoke]), and all of a deleted namespace.
// If an informer missed events, objects that it no longer has, or has with another UID, are
// forgotten whatever their UID. An informer that is restricted to a part of the cluster will do; an
// object that leaves its part counts as deleted. Objects that are deleted while this does not run
// are not forgotten: [WatchCredentials] makes up for that.
//
// It neither runs the informers nor delays them: a goroutine of its own writes. If the store
// refuses a change, that is logged, and tried again. It returns when ctx has ended and all that was
// reported by then is forgotten; or at once with an error if the store is not open, or only
// observed (waybill.ErrClosed, waybill.ErrNotOwner), or an informer was stopped.
func ForgetDeleted(ctx context.Context, store *store.Store, of CredentialInformers) error {
	if err := mayForget(store); err != nil {
		return err
	}
	f := newForgetter(ctx, store)
	defer f.end()
	for _, each := range []struct {
		kind     waybill.RevocationKind
		informer cache.SharedInformer
	}{
		{waybill.RevokeSecret, of.Secrets},
		{waybill.RevokeServiceAccount, of.ServiceAccounts},
		{waybill.RevokeNamespace, of.Namespaces},
	} {
		if each.informer == nil {
			continue
		}
		if _, err := f.listenTo(each.informer, each.kind); err != nil {
			return err
		}
	}
	<-ctx.Done()
	return nil
}

// WatchCredentials keeps a store in step with the cluster, until ctx ends. What is deleted is forgotten
// as [ForgetDeleted] says. What was deleted while nobody watched is forgotten, too: at the start, after
// a watch broke, and every 60 to 90 minutes it lists what exists and gives the store that as the truth
// ([waybill.RevokeMissing]).
//
// The truth is a list of its own, asked of the API server after the token was drawn, of all namespaces,
// and with the newest state (no resource version): never an informer's cache, which may be old, empty
// or a part. A list that fails half way, or has no service account (each namespace has one), is not
// a truth, and forgets nothing. It asks only for Secrets of the two types that a kubelet pulls
// with, and only for metadata: no content of a Secret is sent or kept.
//
// The client needs the permission to list and watch secrets, serviceaccounts and namespaces in all
// namespaces. RBAC can't restrict that to metadata: who has these credentials can read every Secret of
// the cluster. A kubelet's own credentials do not have it, for that reason. Do not give it to nodes
// lightly; ForgetDeleted with informers of namespaces and service accounts needs no Secrets.
//
// Errors are logged, and tried again. A pull that is under way when a truth is asked for proves no
// Secret and no service account; the next pod must prove its own. It returns when ctx has ended and
// its goroutines have, too; or at once with an error, as ForgetDeleted does.
func WatchCredentials(ctx context.Context, store *store.Store, client metadata.Interface) error {
	return watchCredentials(ctx, store, client, truthTimes{betweenTruths, afterFailure, afterGap})
}

type truthTimes struct{ between, afterFailure, afterGap time.Duration }

func watchCredentials(ctx context.Context, store *store.Store, client metadata.Interface, times truthTimes) error {
	if client == nil {
		return errors.New("watch credentials: the client is nil")
	}
	if err := mayForget(store); err != nil {
		return err
	}
	f := newForgetter(ctx, store)
	defer f.end()
	// They end before the forgetter does.
	ctx, cancel := context.WithCancel(ctx)
	var running sync.WaitGroup
	defer running.Wait()
	defer cancel()

	gap := make(chan struct{}, 1)
	var synced []cache.InformerSynced
	for _, resource := range watchedResources {
		factory := metadatainformer.NewFilteredSharedInformerFactory(client, 0, metav1.NamespaceAll, func(options *metav1.ListOptions) {
			options.FieldSelector = resource.selector
		})
		informer := factory.ForResource(resource.GroupVersionResource).Informer()
		err := informer.SetWatchErrorHandlerWithContext(func(ctx context.Context, r *cache.Reflector, err error) {
			cache.DefaultWatchErrorHandler(ctx, r, err)
			if !errors.Is(err, io.EOF) {
				select {
				case gap <- struct{}{}:
				default:
				}
			}
		})
		if err != nil {
			return err
		}
		registration, err := f.listenTo(informer, resource.kind)
		if err != nil {
			return err
		}
		synced = append(synced, registration.HasSynced)
		running.Go(func() { informer.RunWithContext(ctx) })
	}
	// Only then does an event tell if something that a truth has is deleted later.
	if !cache.WaitForCacheSync(ctx.Done(), synced...) {
		return nil
	}
	keepTruth(ctx, times, gap, func() error { return reconcile(ctx, store, client) })
	return nil
}

// keepTruth calls `once` until ctx ends: at once, then from time to time, sooner after an error or a
// gap.
func keepTruth(ctx context.Context, times truthTimes, gap <-chan struct{}, once func() error) {
	failure := times.afterFailure
	for {
		next := wait.Jitter(times.between, 0.5)
		if err := once(); err == nil {
			failure = times.afterFailure
		} else {
			if ctx.Err() != nil {
				return
			}
			next = min(next, wait.Jitter(failure, 0.5))
			failure = min(2*failure, times.between)
			klog.FromContext(ctx).Error(err, "failed to compare the image pull credentials with those that exist, none of them was forgotten", "nextIn", next)
		}
		due := time.Now().Add(next)
		for waiting := true; waiting; {
			select {
			case <-ctx.Done():
				return
			case <-time.After(time.Until(due)):
				waiting = false
			case <-gap:
				if soon := time.Now().Add(wait.Jitter(times.afterGap, 4)); soon.Before(due) {
					due = soon
				}
			}
		}
	}
}

// reconcile gives the store the truth once.
func reconcile(ctx context.Context, store *store.Store, client metadata.Interface) error {
	ctx, cancel := context.WithTimeout(ctx, truthTimeout)
	defer cancel()
	list, err := store.BeginList(ctx) // before the API server is asked
	if err != nil {
		return err
	}
	truth := waybill.RevokeMissing{Secrets: []waybill.CredentialName{}, Token: list.Token}
	into := map[waybill.RevocationKind]*[]waybill.CredentialName{
		waybill.RevokeSecret: &truth.Secrets, waybill.RevokeServiceAccount: &truth.ServiceAccounts}
	for _, resource := range watchedResources {
		if names := into[resource.kind]; names != nil {
			if *names, err = appendNames(ctx, *names, client, resource); err != nil {
				return err
			}
		}
	}
	if len(truth.ServiceAccounts) == 0 {
		return errors.New("the API server lists no service account at all, though each namespace has one: this is no whole list")
	}
	report, err := store.RevokeMissing(ctx, truth)
	if err != nil {
		return err
	}
	klog.FromContext(ctx).V(2).Info("compared the image pull credentials with those that exist",
		"secrets", len(truth.Secrets), "serviceAccounts", len(truth.ServiceAccounts),
		"known", report.Known, "forgotten", report.Missing, "newer", report.Newer, "images", report.Revoked.Images)
	return nil
}

// appendNames lists all of a resource, as it is now: without a resource version.
func appendNames(ctx context.Context, names []waybill.CredentialName, client metadata.Interface, resource watchedResource) ([]waybill.CredentialName, error) {
	pages := pager.New(func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
		return client.Resource(resource.GroupVersionResource).List(ctx, options)
	})
	err := pages.EachListItem(ctx, metav1.ListOptions{FieldSelector: resource.selector}, func(object runtime.Object) error {
		of, err := meta.Accessor(object)
		if err != nil {
			return err
		}
		if len(names) == maxTruth {
			return fmt.Errorf("there are more than %d", maxTruth)
		}
		names = append(names, waybill.CredentialName{Namespace: of.GetNamespace(), Name: of.GetName(), UID: string(of.GetUID())})
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("list all %s: %w", resource.Resource, err)
	}
	return names, nil
}

func mayForget(store *store.Store) error {
	if store == nil {
		return errNilStore
	}
	if _, err := store.BeginList(context.Background()); err != nil {
		return fmt.Errorf("forget credentials: %w", err)
	}
	return nil
}

// forgetter forgets on a goroutine of its own, so that no informer waits for a disk.
type forgetter struct {
	store   *store.Store
	logger  klog.Logger
	queue   workqueue.TypedRateLimitingInterface[waybill.Revoke]
	working sync.WaitGroup
	leave   []func()
}

func newForgetter(ctx context.Context, store *store.Store) *forgetter {
	limiter := workqueue.NewTypedItemExponentialFailureRateLimiter[waybill.Revoke](retryAtFirst, retryAtLast)
	f := &forgetter{store: store, logger: klog.FromContext(ctx), queue: workqueue.NewTypedRateLimitingQueue(limiter)}
	f.working.Go(f.work)
	return f
}

// end returns when everything in the queue was tried once.
func (f *forgetter) end() {
	for _, leave := range f.leave {
		leave()
	}
	f.queue.ShutDown()
	f.working.Wait()
}

func (f *forgetter) listenTo(informer cache.SharedInformer, kind waybill.RevocationKind) (cache.ResourceEventHandlerRegistration, error) {
	registration, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		UpdateFunc: func(before, after any) { f.updated(kind, before, after) },
		DeleteFunc: func(object any) { f.deleted(kind, object) },
	})
	if err != nil {
		return nil, fmt.Errorf("listen to an informer: %w", err)
	}
	f.leave = append(f.leave, func() { _ = informer.RemoveEventHandler(registration) })
	return registration, nil
}

func (f *forgetter) deleted(kind waybill.RevocationKind, object any) {
	if missed, ok := object.(cache.DeletedFinalStateUnknown); ok {
		// The deleted object may be a later one of that name than the informer knew.
		namespace, name, err := cache.SplitMetaNamespaceKey(missed.Key)
		if err != nil {
			f.logger.Error(err, "an informer reported a deletion that can't be read", "key", missed.Key)
			return
		}
		f.add(kind, namespace, name, "")
		return
	}
	of, err := meta.Accessor(object)
	if err != nil {
		f.logger.Error(err, "an informer reported a deletion that can't be read")
		return
	}
	f.add(kind, of.GetNamespace(), of.GetName(), string(of.GetUID()))
}

// updated looks for an object that was deleted and created anew. An informer reports that as one update
// only if it missed events: there may have been others of that name in between.
func (f *forgetter) updated(kind waybill.RevocationKind, before, after any) {
	was, err := meta.Accessor(before)
	if err != nil {
		f.logger.Error(err, "an informer reported an update that can't be read")
		return
	}
	is, err := meta.Accessor(after)
	if err != nil || is.GetUID() != was.GetUID() {
		f.add(kind, was.GetNamespace(), was.GetName(), "")
	}
}

func (f *forgetter) add(kind waybill.RevocationKind, namespace, name, uid string) {
	if kind == waybill.RevokeNamespace {
		namespace, name, uid = name, "", ""
	}
	f.queue.Add(waybill.Revoke{Kind: kind, Namespace: namespace, Name: name, UID: uid})
}

func (f *forgetter) work() {
	for {
		what, ended := f.queue.Get()
		if ended {
			return
		}
		f.forget(what)
		f.queue.Done(what)
	}
}

func (f *forgetter) forget(what waybill.Revoke) {
	report, err := f.store.Revoke(context.Background(), what)
	logger := klog.LoggerWithValues(f.logger, "kind", what.Kind, "namespace", what.Namespace, "name", what.Name, "uid", what.UID)
	switch {
	case err == nil:
		f.queue.Forget(what)
		if report.Stored {
			logger.V(2).Info("forgot an image pull credential that was deleted", "images", report.Images, "equalHashes", report.EqualHashes)
		}
	case errors.Is(err, waybill.ErrInvalidArgument), errors.Is(err, waybill.ErrLimitExceeded), errors.Is(err, waybill.ErrClosed):
		f.queue.Forget(what) // would fail again
		logger.Error(err, "failed to forget an image pull credential that was deleted")
	default:
		logger.Error(err, "failed to forget an image pull credential that was deleted, trying again", "failures", f.queue.NumRequeues(what)+1)
		f.queue.AddRateLimited(what)
	}
}
