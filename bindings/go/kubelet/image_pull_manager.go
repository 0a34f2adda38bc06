package kubelet

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/pkg/features"
	kubeletconfig "k8s.io/kubernetes/pkg/kubelet/apis/config"
	kubecontainer "k8s.io/kubernetes/pkg/kubelet/container"
	"k8s.io/kubernetes/pkg/kubelet/images/pullmanager"
	"waybill.dev/go"
)

var _ pullmanager.ImagePullManager = (*ImagePullManager)(nil)

// ImagePullManager replaces the kubelet's whole pullmanager.PullManager. A decision crosses into the
// store once, or twice if it depends on the pod's credentials, and takes no lock unless nothing is known
// of the image. It is safe for any number of goroutines.
//
// Under waybill.RulesClosed it asks the runtime for its images by itself, and lets the store judge them:
// before its first pull, at each garbage collection, and if a decision finds nothing known of an image
// (at most once a second; the decision is then made again). A list that fails or is empty changes
// nothing.
type ImagePullManager struct {
	store        *waybill.Store
	imageService kubecontainer.ImageService
	metrics      *kubeletMetrics
	lists        *imageLists // waybill.RulesClosed only

	// Held while the end of a pull is recorded, and shared while an intent is: so the store's newest
	// pull of a string is the newest here.
	order sync.RWMutex

	mu sync.Mutex
	// Pulls under way, by image string, the oldest first. waybill.RulesClosed only.
	pulls map[string][]waybill.PullID
	// Of these strings more than one was under way at once, since last none was: how sure it is when the
	// one began that ends next.
	mixed map[string]beginning
}

type beginning int

const (
	known     beginning = iota
	theOldest           // the store takes it for the oldest that runs, which is no later
	unknown             // it may be older than all that run: one ended in its place
)

// NewImagePullManager replaces pullmanager.NewImagePullManager. The store stays the caller's. Open it
// with the policy (VerificationPolicy) and the runtime's images (ImagesOnNode); OpenStore does all of
// this. Under waybill.RulesClosed the manager asks imageService for its images, and whether an image is
// there whose pull failed; under waybill.RulesKubelet it may be nil.
func NewImagePullManager(store *waybill.Store, imageService kubecontainer.ImageService) (*ImagePullManager, error) {
	if store == nil {
		return nil, errNilStore
	}
	m := &ImagePullManager{store: store, imageService: imageService, metrics: sharedMetrics()}
	if store.Rules() == waybill.RulesClosed {
		if imageService == nil {
			return nil, errors.New("the image service is nil: the closed rules need the runtime's list of images")
		}
		m.pulls, m.mixed = map[string][]waybill.PullID{}, map[string]beginning{}
		m.lists = &imageLists{store: store, imageService: imageService, observed: func(logger klog.Logger) {
			m.metrics.noteRecords(logger, store)
			m.metrics.noteIntents(logger, store)
		}}
	}
	m.metrics.noteIntents(klog.Background(), store)
	m.metrics.noteRecords(klog.Background(), store)
	shownStore().store.Store(store)
	return m, nil
}

func (m *ImagePullManager) closed() bool { return m.lists != nil }

func (m *ImagePullManager) recordPullIntent(logger klog.Logger, image string) error {
	if m.closed() {
		m.lists.beforeFirstPull(klog.NewContext(context.Background(), logger))
	}
	if err := m.begin(image); err != nil {
		return fmt.Errorf("failed to record image pull intent: %w", err)
	}
	m.metrics.noteIntents(logger, m.store)
	return nil
}

func (m *ImagePullManager) begin(image string) error {
	m.order.RLock()
	defer m.order.RUnlock()
	pull, err := m.store.RecordPullIntent(waybill.ImageCopy{Image: image})
	if err != nil || !m.closed() {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	pulls := append(m.pulls[image], pull)
	slices.Sort(pulls) // as they began in the store
	m.pulls[image] = pulls
	if len(pulls) > 1 {
		m.mixed[image] = max(m.mixed[image], theOldest)
	}
	return nil
}

// ended returns which pull of this string ended; 0: none is known. The kubelet does not say which of
// several it was. One that can bring nothing more is taken to be the newest, any other the oldest, since
// a pull can have brought nothing to a list that was made before it began. Also, how sure it is when it
// began.
func (m *ImagePullManager) ended(image string, bringsNothingMore bool) (waybill.PullID, beginning) {
	m.mu.Lock()
	defer m.mu.Unlock()
	pulls := m.pulls[image]
	if len(pulls) == 0 {
		return 0, known
	}
	began := m.mixed[image]
	at := 0
	if bringsNothingMore {
		at = len(pulls) - 1
	}
	pull := pulls[at]
	if pulls = slices.Delete(pulls, at, at+1); len(pulls) == 0 {
		delete(m.pulls, image)
		delete(m.mixed, image)
	} else {
		m.pulls[image] = pulls
		if !bringsNothingMore {
			m.mixed[image] = unknown
		}
	}
	return pull, began
}

// RecordImagePulled merges the credentials into the record and drops the intent, in one step. nil
// credentials, which the kubelet never passes, count as unknown. If the write fails, the intent stays,
// and so the image stays closed. Of several pulls of one string under way, the one that ended counts as
// the one that began first: what was forgotten meanwhile stays forgotten. If one of them failed, nobody
// knows that any more, and the credentials count as unknown.
func (m *ImagePullManager) RecordImagePulled(ctx context.Context, image, imageRef string, credentials *kubeletconfig.ImagePullCredentials) {
	logger := klog.FromContext(ctx)
	pulled := waybill.PulledImage{
		ImageCopy:   waybill.ImageCopy{Image: image, ImageRef: imageRef},
		Credentials: credentialsToStore(credentials),
	}
	if err := m.recordSuccess(pulled); err != nil {
		logger.Error(err, "failed to write image pulled record", "imageRef", imageRef)
		return
	}
	m.metrics.noteRecords(logger, m.store)
	m.metrics.noteIntents(logger, m.store)
}

func (m *ImagePullManager) recordSuccess(pulled waybill.PulledImage) error {
	m.order.Lock()
	defer m.order.Unlock()
	switch pull, began := m.ended(pulled.Image, true); began {
	case known:
		pulled.Pull = pull
	case theOldest: // without an ID the store ends the newest, and goes by the beginning of the oldest
	case unknown:
		pulled.Pull, pulled.Credentials = pull, nil
	}
	return m.store.RecordImagePulled(pulled)
}

// RecordImagePullFailed ends the intent. Under waybill.RulesClosed the runtime is asked whether the image
// is there. If it is not, the pull is forgotten. Otherwise it may have brought the image, and what it
// could have given stays closed for a while. If ctx ended, or the runtime does not answer, the image may
// still arrive. The kubelet's interface tells no other reason: a connection to the runtime that was lost
// and is there again counts as an error that the runtime reported.
func (m *ImagePullManager) RecordImagePullFailed(ctx context.Context, image string) {
	logger := klog.FromContext(ctx)
	failure := waybill.PullFailed
	if m.closed() {
		failure = m.failureOf(ctx, image)
	}
	if err := m.recordFailure(image, failure); err != nil {
		logger.Error(err, "failed to remove image pull intent", "image", image)
		return
	}
	m.metrics.noteIntents(logger, m.store)
}

func (m *ImagePullManager) recordFailure(image string, failure waybill.PullFailure) error {
	m.order.Lock()
	defer m.order.Unlock()
	pull, _ := m.ended(image, failure == waybill.PullNothingTransferred)
	return m.store.RecordImagePullFailed(waybill.ImageCopy{Image: image}, failure, pull)
}

// failureOf asks the runtime what a pull that failed left.
func (m *ImagePullManager) failureOf(ctx context.Context, image string) waybill.PullFailure {
	if ctx.Err() != nil {
		return waybill.PullOutcomeUnknown
	}
	name := image
	if parts, ok := waybill.ParseImage(image); ok && parts.Tag == "" && parts.Digest == "" {
		name += ":latest" // as the kubelet pulls it
	}
	ref, err := m.imageService.GetImageRef(ctx, kubecontainer.ImageSpec{Image: name})
	switch {
	case err != nil || ctx.Err() != nil:
		return waybill.PullOutcomeUnknown
	case ref != "" || utilfeature.DefaultFeatureGate.Enabled(features.RuntimeClassInImageCriAPI):
		// With that feature the pull may have been for a runtime handler that the kubelet does not name.
		return waybill.PullFailed
	default:
		return waybill.PullNothingTransferred
	}
}

// MustAttemptImagePull returns no error but getPodCredentials' own. What can't be read is logged, and
// is "pull". Under waybill.RulesClosed an image that nothing is known of is listed and asked about again;
// the second answer counts.
func (m *ImagePullManager) MustAttemptImagePull(ctx context.Context, image, imageRef string, getPodCredentials pullmanager.GetPodCredentials) (bool, error) {
	result := waybill.CheckError // counted if getPodCredentials panics
	defer func() { m.metrics.count(result) }()
	var fetch func() (waybill.PodCredentials, error)
	if getPodCredentials != nil {
		fetch = func() (waybill.PodCredentials, error) {
			secrets, account, err := getPodCredentials()
			if err != nil {
				return waybill.PodCredentials{}, err
			}
			credentials := waybill.PodCredentials{Secrets: secretsToStore(secrets)}
			if account != nil {
				credentials.ServiceAccount = new(waybill.ImagePullServiceAccount(*account))
			}
			return credentials, nil
		}
	}
	copy := waybill.ImageCopy{Image: image, ImageRef: imageRef}
	lists := m.lists.count()
	decision, err := m.store.MustAttemptPullLazily(copy, fetch)
	if decision.Reason == waybill.ReasonNoEvidence && m.lists.since(ctx, lists) {
		decision, err = m.store.MustAttemptPullLazily(copy, fetch)
	}
	result = decision.Result
	if err != nil {
		return true, err
	}
	if decision.Pull() && decision.Result == waybill.CheckError {
		klog.FromContext(ctx).Error(errors.New(decision.Reason.Text()), "Unable to decide on cached records, forcing image credentials reverification", "image", image, "imageRef", imageRef)
	}
	return decision.Pull(), nil
}

// PruneUnknownRecords deletes the records of images that are no longer on the node.
//
// The kubelet's image garbage collector calls it with imageList, which after a collection for disk
// space has only the candidates that it looked at and kept. Under waybill.RulesKubelet that list and
// until decide, as in the kubelet. Under waybill.RulesClosed they are ignored: the manager asks the
// runtime for its images, after drawing a token that keeps the records of later pulls, and lets the store
// judge them.
func (m *ImagePullManager) PruneUnknownRecords(ctx context.Context, imageList []string, until time.Time) {
	if m.closed() {
		m.lists.listNow(ctx)
		return
	}
	logger := klog.FromContext(ctx)
	listed := make([]waybill.ImageOnNode, 0, len(imageList))
	for _, imageRef := range imageList {
		listed = append(listed, waybill.ImageOnNode{ID: imageRef})
	}
	if _, err := m.store.PruneBefore(listed, until, waybill.AllowEmpty); err != nil {
		logger.Error(err, "failed to prune ImagePulledRecords")
		return
	}
	m.metrics.noteRecords(logger, m.store)
}
