package kubelet

import (
	"context"
	"errors"
	"fmt"
	"time"

	"k8s.io/klog/v2"
	kubeletconfig "k8s.io/kubernetes/pkg/kubelet/apis/config"
	kubecontainer "k8s.io/kubernetes/pkg/kubelet/container"
	"k8s.io/kubernetes/pkg/kubelet/images/pullmanager"
	"waybill.dev/go"
)

var _ pullmanager.ImagePullManager = (*ImagePullManager)(nil)

// ImagePullManager replaces the kubelet's whole pullmanager.PullManager. A decision crosses into the
// store once, or twice if it depends on the pod's credentials, and takes no lock. It is safe for any
// number of goroutines.
type ImagePullManager struct {
	store        *waybill.Store
	imageService kubecontainer.ImageService
	metrics      *kubeletMetrics
}

// NewImagePullManager replaces pullmanager.NewImagePullManager. The store stays the caller's. Open it
// with the policy (VerificationPolicy), and with the runtime's images (ImagesOnNode) for the replay
// that the kubelet's constructor does; OpenStore does all of this. Under waybill.RulesClosed
// PruneUnknownRecords asks imageService for its images; under waybill.RulesKubelet it may be nil.
func NewImagePullManager(store *waybill.Store, imageService kubecontainer.ImageService) (*ImagePullManager, error) {
	if store == nil {
		return nil, errNilStore
	}
	if imageService == nil && store.Rules() == waybill.RulesClosed {
		return nil, errors.New("the image service is nil: the closed rules need the complete list of images to prune")
	}
	m := &ImagePullManager{store: store, imageService: imageService, metrics: sharedMetrics()}
	m.metrics.noteIntents(klog.Background(), store)
	m.metrics.noteRecords(klog.Background(), store)
	return m, nil
}

// RecordPullIntent returns once the intent is on disk. The pull must not begin before.
func (m *ImagePullManager) RecordPullIntent(logger klog.Logger, image string) error {
	if err := m.store.RecordPullIntent(waybill.ImageCopy{Image: image}); err != nil {
		return fmt.Errorf("failed to record image pull intent: %w", err)
	}
	m.metrics.noteIntents(logger, m.store)
	return nil
}

// RecordImagePulled merges the credentials into the record and drops the intent, in one step. nil
// credentials, which the kubelet never passes, count as unknown. If the write fails, the intent stays,
// and so the image stays closed.
func (m *ImagePullManager) RecordImagePulled(ctx context.Context, image, imageRef string, credentials *kubeletconfig.ImagePullCredentials) {
	logger := klog.FromContext(ctx)
	err := m.store.RecordImagePulled(waybill.PulledImage{
		ImageCopy:   waybill.ImageCopy{Image: image, ImageRef: imageRef},
		Credentials: credentialsToStore(credentials),
	})
	if err != nil {
		logger.Error(err, "failed to write image pulled record", "imageRef", imageRef)
		return
	}
	m.metrics.noteRecords(logger, m.store)
	m.metrics.noteIntents(logger, m.store)
}

// RecordImagePullFailed drops the intent. A pull that failed because ctx ended may have succeeded in
// the runtime, so waybill.RulesClosed keeps its intent. The kubelet's interface tells no other reason:
// a connection to the runtime that was lost before ctx ended counts as a failed pull.
func (m *ImagePullManager) RecordImagePullFailed(ctx context.Context, image string) {
	logger := klog.FromContext(ctx)
	failure := waybill.PullFailed
	if ctx.Err() != nil {
		failure = waybill.PullOutcomeUnknown
	}
	if err := m.store.RecordImagePullFailed(waybill.ImageCopy{Image: image}, failure); err != nil {
		logger.Error(err, "failed to remove image pull intent", "image", image)
		return
	}
	m.metrics.noteIntents(logger, m.store)
}

// MustAttemptImagePull returns no error but getPodCredentials' own. What can't be read is logged, and
// is "pull".
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
	decision, err := m.store.MustAttemptPullLazily(waybill.ImageCopy{Image: image, ImageRef: imageRef}, fetch)
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
// runtime for its images, after drawing a token that keeps the records of later pulls. If the runtime
// does not answer, or lists no images at all, no record is deleted; this is logged.
func (m *ImagePullManager) PruneUnknownRecords(ctx context.Context, imageList []string, until time.Time) {
	logger := klog.FromContext(ctx)
	if m.store.Rules() == waybill.RulesKubelet {
		listed := make([]waybill.ListedImage, 0, len(imageList))
		for _, imageRef := range imageList {
			listed = append(listed, waybill.ListedImage{ImageRef: imageRef})
		}
		if _, err := m.store.PruneBefore(listed, until, waybill.AllowEmpty); err != nil {
			logger.Error(err, "failed to prune ImagePulledRecords")
			return
		}
		m.metrics.noteRecords(logger, m.store)
		return
	}
	token, err := m.store.BeginPrune()
	if err != nil {
		logger.Error(err, "failed to begin pruning ImagePulledRecords")
		return
	}
	images, err := m.imageService.ListImages(ctx)
	if err != nil {
		logger.Error(err, "failed to list images, no ImagePulledRecord is pruned")
		return
	}
	// Without a runtime handler, since the kubelet's records have none: any copy keeps its ref's record.
	listed := make([]waybill.ListedImage, 0, len(images))
	for _, image := range images {
		listed = append(listed, waybill.ListedImage{ImageRef: image.ID})
	}
	// A runtime that starts up lists no images: the store refuses an empty list.
	if _, err := m.store.Prune(listed, token); err != nil {
		logger.Error(err, "failed to prune ImagePulledRecords")
		return
	}
	m.metrics.noteRecords(logger, m.store)
}
