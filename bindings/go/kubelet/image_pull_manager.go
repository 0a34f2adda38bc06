package kubelet

import (
	"context"
	"errors"
	"fmt"
	"time"

	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/pkg/features"
	kubeletconfig "k8s.io/kubernetes/pkg/kubelet/apis/config"
	kubecontainer "k8s.io/kubernetes/pkg/kubelet/container"
	"k8s.io/kubernetes/pkg/kubelet/images/pullmanager"
	"waybill.dev/go"
	"waybill.dev/go/store"
)

var _ pullmanager.ImagePullManager = (*ImagePullManager)(nil)

// ImagePullManager replaces the kubelet's whole pullmanager.PullManager. A decision crosses into the
// store once, or twice if it depends on the pod's credentials, and takes no lock unless nothing is known
// of the image. It is safe for any number of goroutines.
//
// Under waybill.ModeStrict it asks the runtime for its images by itself, and lets the store judge them:
// before its first pull, at each garbage collection, and if a decision finds nothing known of an image
// (at most once a second: it waits for its turn, and is then made again). A list that fails or is empty changes
// nothing. Decisions and pulls wait for the image service for 10 seconds at most, and then go on without
// its answer. Only PruneUnknownRecords waits as long as the service does, so its caller must not hold a
// lock that the service needs.
//
// If the store took over a kubelet directory, the manager keeps files in its image_manager/ by which a
// kubelet without waybill knows what was pulled: it verifies these images, and presumes none preloaded.
type ImagePullManager struct {
	store        *store.Store
	imageService kubecontainer.ImageService
	metrics      *kubeletMetrics
	lists        *imageLists  // waybill.ModeStrict only
	files        *closedFiles // nil: none
	// Who checks the credentials of a pull; nil: unknown.
	checker func(image, runtimeHandler string) waybill.VerifiedBy
}

// NewImagePullManager replaces pullmanager.NewImagePullManager. The store stays the caller's. Open it
// with the policy (VerificationPolicy) and the runtime's images (ImagesOnNode); OpenStore does all of
// this. Under waybill.ModeStrict the manager asks imageService for its images, and whether an image is
// there whose pull failed; under waybill.ModeKubelet it may be nil.
func NewImagePullManager(store *store.Store, imageService kubecontainer.ImageService, options ...ManagerOption) (*ImagePullManager, error) {
	if store == nil {
		return nil, errNilStore
	}
	m := &ImagePullManager{store: store, imageService: imageService, metrics: metricsOf(store), files: closedFilesOf(store)}
	for _, option := range options {
		option(m)
	}
	if isStrict(store) {
		if imageService == nil {
			return nil, errors.New("the image service is nil: mode strict needs the runtime's list of images")
		}
		m.lists = &imageLists{store: store, imageService: imageService, files: m.files, metrics: m.metrics}
	}
	ctx, cancel := context.WithTimeout(context.Background(), callerWait)
	defer cancel()
	if m.files != nil && m.closed() {
		m.lists.listNow(ctx)
	}
	m.files.putRight(klog.Background(), nil)
	return m, nil
}

// isStrict says what Open did with the settings.
func isStrict(store *store.Store) bool { return store.Options().Settings.Mode != waybill.ModeKubelet }

func (m *ImagePullManager) closed() bool { return m.lists != nil }

func (m *ImagePullManager) recordPullIntent(logger klog.Logger, image string) error {
	_, err := m.begin(klog.NewContext(context.Background(), logger), image)
	return err
}

func (m *ImagePullManager) begin(ctx context.Context, image string) (int64, error) {
	if m.closed() {
		m.lists.beforeFirstPull(ctx)
	}
	begun, err := m.store.BeginPull(ctx, waybill.BeginPull{Image: image})
	if err == nil {
		if err, _ = m.files.putRight(klog.FromContext(ctx), nil); err != nil {
			// It does not begin.
			err = errors.Join(err, m.store.EndPull(ctx, waybill.EndPull{Image: image, Pull: begun.Pull, Outcome: waybill.OutcomeNothing}))
		}
	}
	if err != nil {
		return 0, fmt.Errorf("failed to record image pull intent: %w", err)
	}
	m.metrics.note(klog.FromContext(ctx), m.store)
	return begun.Pull, nil
}

// RecordPullIntent is the manager's RecordPullIntent, and returns a context that says which pull it
// is. An [ImagePullManager] that records the end of a pull with this context ends this pull and no
// other. With any other manager, ctx is returned as it is.
func RecordPullIntent(ctx context.Context, manager pullmanager.ImagePullManager, image string) (context.Context, error) {
	m, ours := manager.(*ImagePullManager)
	if !ours {
		return ctx, recordIntentWith(ctx, manager, image)
	}
	pull, err := m.begin(ctx, image)
	if err != nil {
		return ctx, err
	}
	return context.WithValue(ctx, begunKey{}, begun{m, image, pull}), nil
}

// begun says which pull a context belongs to.
type begun struct {
	manager *ImagePullManager
	image   string
	pull    int64
}

type begunKey struct{}

// pullOf returns 0 if the context does not say it.
func (m *ImagePullManager) pullOf(ctx context.Context, image string) int64 {
	if of, ok := ctx.Value(begunKey{}).(begun); ok && of.manager == m && of.image == image {
		return of.pull
	}
	return 0
}

// RecordImagePulled merges the credentials into the record and drops the intent, in one step. nil
// credentials, which the kubelet never passes, count as unknown. If the write fails, the intent stays,
// and so the image stays closed. If ctx does not come from [RecordPullIntent], and several pulls of
// one string are under way, the one that ended counts as begun with the oldest: credentials that
// were forgotten since stay forgotten.
//
// Under waybill.ModeStrict a pull that used no credential of a pod takes the place of no Secret or service
// account that is, or was, on record. NodeHadNoCredentials stays false, since nothing here can know it: the
// kubelet passes NodePodsAccessible both if its keyring had nothing and if the node's own credential served
// (trackedToImagePullCreds), and what the runtime adds by its own configuration (containerd's registry.configs,
// CRI-O's global_auth_file) never passes through the kubelet.
func (m *ImagePullManager) RecordImagePulled(ctx context.Context, image, imageRef string, credentials *kubeletconfig.ImagePullCredentials) {
	logger := klog.FromContext(ctx)
	pulled := waybill.EndPull{Image: image, ImageRef: imageRef, Pull: m.pullOf(ctx, image),
		Outcome: waybill.OutcomePulled, Credentials: credentialsToStore(credentials)}
	pulled.VerifiedBy, pulled.ValidUntil = m.termsOf(ctx, image)
	if err := m.store.EndPull(ctx, pulled); err != nil {
		logger.Error(err, "failed to write image pulled record", "imageRef", imageRef)
		return
	}
	m.files.putRight(logger, nil)
	m.metrics.note(logger, m.store)
}

// RecordImagePullFailed ends the intent. Under waybill.ModeStrict the runtime is asked whether the image
// is there. If it is not, the pull is forgotten. Otherwise it may have brought the image, and
// images that it could have brought stay closed for a while. If ctx ended, or the runtime does not
// answer, the image may still arrive. The kubelet's interface tells no other reason: a connection
// to the runtime that was lost and is there again counts as an error that the runtime reported.
func (m *ImagePullManager) RecordImagePullFailed(ctx context.Context, image string) {
	logger := klog.FromContext(ctx)
	failed := waybill.EndPull{Image: image, Pull: m.pullOf(ctx, image), Outcome: waybill.OutcomeFailed}
	if m.closed() {
		failed.Outcome = m.outcomeOf(ctx, image)
	}
	failed.Error, _ = ctx.Value(pullErrorKey{}).(string)
	if err := m.store.EndPull(ctx, failed); err != nil {
		logger.Error(err, "failed to remove image pull intent", "image", image)
		return
	}
	m.files.putRight(logger, nil)
	m.metrics.note(logger, m.store)
}

type pullErrorKey struct{}

// WithPullError returns a context for [ImagePullManager.RecordImagePullFailed] that says what the
// pull ended with, for metrics alone. The kubelet's interface does not say it.
func WithPullError(ctx context.Context, err error) context.Context {
	if err == nil {
		return ctx
	}
	return context.WithValue(ctx, pullErrorKey{}, err.Error())
}

// outcomeOf asks the runtime what a failed pull left.
func (m *ImagePullManager) outcomeOf(ctx context.Context, image string) waybill.PullOutcome {
	if ctx.Err() != nil {
		return waybill.OutcomeUnknown
	}
	name := image
	if parts, err := store.Library.ParseImage(ctx, waybill.ParseImage{Image: image}); err == nil && parts.Tag == "" && parts.Digest == "" {
		name += ":latest" // as the kubelet pulls it
	}
	ctx, cancel := context.WithTimeout(ctx, callerWait)
	defer cancel()
	var ref string
	var err error
	answered := make(chan struct{})
	go func() {
		defer close(answered)
		ref, err = m.imageService.GetImageRef(ctx, kubecontainer.ImageSpec{Image: name})
	}()
	select {
	case <-answered:
	case <-ctx.Done():
		return waybill.OutcomeUnknown
	}
	switch {
	case err != nil || ctx.Err() != nil:
		return waybill.OutcomeUnknown
	case ref != "" || utilfeature.DefaultFeatureGate.Enabled(features.RuntimeClassInImageCriAPI):
		// With that feature the pull may have been for a runtime handler that the kubelet does not name.
		return waybill.OutcomeFailed
	default:
		return waybill.OutcomeNothing
	}
}

// MustAttemptImagePull returns only errors of getPodCredentials. If something can't be read, that
// is logged, and the answer is "pull". Under waybill.ModeStrict, if nothing is known of an image,
// it lists the images and asks again; the second answer counts.
func (m *ImagePullManager) MustAttemptImagePull(ctx context.Context, image, imageRef string, getPodCredentials pullmanager.GetPodCredentials) (bool, error) {
	result := "error" // counted if getPodCredentials panics
	defer func() { m.metrics.count(result) }()
	var fetch func() (store.PodCredentials, error)
	if getPodCredentials != nil {
		fetch = func() (store.PodCredentials, error) {
			secrets, account, err := getPodCredentials()
			if err != nil {
				return store.PodCredentials{}, err
			}
			credentials := store.PodCredentials{Secrets: secretsToStore(secrets)}
			if account != nil {
				credentials.ServiceAccount = new(accountToStore(*account))
			}
			return credentials, nil
		}
	}
	copy := store.ImageCopy{Image: image, ImageRef: imageRef}
	seen := m.lists.latest()
	decision, err := m.store.DecideLazily(copy, fetch)
	unknown := func() bool { return decision.Reason.String() == "noEvidence" }
	if m.closed() && unknown() {
		m.lists.judge(ctx, seen, func() bool {
			decision, err = m.store.DecideLazily(copy, fetch)
			return unknown()
		})
	}
	result = decision.Result.String()
	if err != nil {
		return true, err
	}
	if !decision.Use && result == "error" {
		klog.FromContext(ctx).Error(errors.New(decision.Reason.Text()), "Unable to decide on cached records, forcing image credentials reverification", "image", image, "imageRef", imageRef)
	}
	return !decision.Use, nil
}

// PruneUnknownRecords deletes the records of images that are no longer on the node.
//
// The kubelet's image garbage collector calls it with imageList, which after a collection for disk
// space has only the candidates that it looked at and kept. Under waybill.ModeKubelet that list and
// until decide, as in the kubelet. Under waybill.ModeStrict they are ignored: the manager asks the
// runtime for its images, after drawing a token that keeps the records of later pulls, and lets the store
// judge them.
func (m *ImagePullManager) PruneUnknownRecords(ctx context.Context, imageList []string, until time.Time) {
	if m.closed() {
		m.lists.listNow(ctx)
		return
	}
	logger := klog.FromContext(ctx)
	listed := make([]waybill.ListedImage, 0, len(imageList))
	for _, imageRef := range imageList {
		listed = append(listed, waybill.ListedImage{ID: imageRef})
	}
	if _, err := m.store.PruneBefore(ctx, waybill.PruneBefore{Images: listed, Before: until, AllowEmpty: true}); err != nil {
		logger.Error(err, "failed to prune ImagePulledRecords")
		return
	}
	m.files.putRight(logger, nil)
	m.metrics.note(logger, m.store)
}
