package kubelet

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"

	utilerrors "k8s.io/apimachinery/pkg/util/errors"
	"k8s.io/klog/v2"
	kubeletconfig "k8s.io/kubernetes/pkg/kubelet/apis/config"
	"k8s.io/kubernetes/pkg/kubelet/images/pullmanager"
	"waybill.dev/go"
	"waybill.dev/go/store"
)

var _ pullmanager.PullRecordsAccessor = (*RecordsAccessor)(nil)

var errNilStore = errors.New("the store is nil")

// RecordsAccessor keeps the records of the kubelet's own pullmanager.PullManager in a waybill store.
// It answers as the kubelet's file accessor does: times are in whole seconds, a list has the
// readable entries beside an error for the rest, and an undecodable entry exists. It is stricter
// where the store knows more, so that no image is wrongly presumed preloaded: if records may have
// been lost, or only another runtime handler's copy was pulled, an image ref without a record gets
// one without credentials; another handler's intent counts as an intent.
//
// Its intents count no pulls in flight: the PullManager does that. So a store serves either a
// RecordsAccessor or an ImagePullManager, not both at the same time.
type RecordsAccessor struct {
	store   *store.Store
	metrics *kubeletMetrics
	files   *closedFiles // nil: none
	// Whether something may be in quarantine. Only opening makes entries, so once it is empty it stays
	// empty.
	quarantine atomic.Bool
}

// NewRecordsAccessor replaces pullmanager.NewFSPullRecordsAccessor. The store stays the caller's: close
// it once the accessor is no longer used. It needs waybill.ModeKubelet, as OpenStore opens it with
// Setup.ForAccessor: the kubelet's PullManager decides, and takes an image without a record for
// preloaded, which mode strict does not. Open it without Images, since the PullManager replays
// intents itself.
func NewRecordsAccessor(store *store.Store) (*RecordsAccessor, error) {
	if store != nil && isStrict(store) {
		return nil, errors.New("the store is in mode strict, but the kubelet's own manager decides by its own: " +
			"open it in mode kubelet (Setup.ForAccessor), or use NewImagePullManager; the store was left as it is")
	}
	accessor, err := newRecordsAccessor(store)
	if err == nil {
		accessor.files = closedFilesOf(store)
		accessor.files.putRight(klog.Background(), nil)
	}
	return accessor, err
}

func newRecordsAccessor(store *store.Store) (*RecordsAccessor, error) {
	if store == nil {
		return nil, errNilStore
	}
	status, err := store.GetStatus(context.Background(), waybill.GetStatus{Brief: true})
	if err != nil {
		return nil, fmt.Errorf("read the waybill store: %w", err)
	}
	accessor := &RecordsAccessor{store: store, metrics: metricsOf(store)}
	accessor.quarantine.Store(status.Counts.QuarantinedFiles > 0)
	return accessor, nil
}

// ListImagePullIntents lists the intents of the default runtime handler.
func (a *RecordsAccessor) ListImagePullIntents() ([]*kubeletconfig.ImagePullIntent, error) {
	stored, err := intentsOf(a.store)
	if err != nil {
		return nil, err
	}
	var intents []*kubeletconfig.ImagePullIntent
	for _, intent := range stored {
		if intent.RuntimeHandler == "" {
			intents = append(intents, &kubeletconfig.ImagePullIntent{Image: intent.Image})
		}
	}
	return intents, a.unreadable(waybill.QuarantineImage)
}

// ImagePullIntentExists returns false and an error for an intent that can't be read. Another runtime
// handler's intent counts: the image was not preloaded. ListPulls of an image has one handler's only.
func (a *RecordsAccessor) ImagePullIntentExists(image string) (bool, error) {
	if err := a.unreadable(waybill.QuarantineImage, image); err != nil {
		return false, err
	}
	stored, err := intentsOf(a.store)
	return slices.ContainsFunc(stored, func(intent waybill.UnresolvedPull) bool { return intent.Image == image }), err
}

func (a *RecordsAccessor) writeIntent(logger klog.Logger, image string) error {
	if _, err := a.store.BeginPull(context.Background(), waybill.BeginPull{Image: image, UnlessRunning: true}); err != nil {
		return err
	}
	a.metrics.note(logger, a.store)
	// The stored intent stays, if this fails: it can only close.
	err, _ := a.files.putRight(logger, nil)
	return err
}

func (a *RecordsAccessor) deleteIntent(logger klog.Logger, image string) error {
	if _, err := a.store.DropPulls(context.Background(), waybill.DropPulls{Image: &image, Reason: "the kubelet deleted its intent"}); err != nil && !errors.Is(err, waybill.ErrNotFound) {
		return err
	}
	a.files.putRight(logger, nil)
	a.metrics.note(logger, a.store)
	return nil
}

// ListImagePulledRecords lists the records of the default runtime handler.
func (a *RecordsAccessor) ListImagePulledRecords() ([]*kubeletconfig.ImagePulledRecord, error) {
	stored, err := a.store.ListImages(context.Background(), waybill.ListImages{Hashes: true})
	if err != nil {
		return nil, err
	}
	var records []*kubeletconfig.ImagePulledRecord
	for _, record := range stored.Records {
		if record.RuntimeHandler == "" {
			records = append(records, recordToKubelet(record))
		}
	}
	return records, a.unreadable(waybill.QuarantineImageRef)
}

// GetImagePulledRecord returns exists=true and an error for a record that exists but can't be read.
func (a *RecordsAccessor) GetImagePulledRecord(imageRef string) (*kubeletconfig.ImagePulledRecord, bool, error) {
	if err := a.unreadable(waybill.QuarantineImageRef, imageRef); err != nil {
		return nil, true, err
	}
	stored, err := a.store.ListImages(context.Background(), waybill.ListImages{ImageRef: imageRef, Hashes: true})
	switch {
	case err == nil && len(stored.Records) > 0:
		return recordToKubelet(stored.Records[0]), true, nil
	case err == nil:
	case errors.Is(err, waybill.ErrDamaged), errors.Is(err, waybill.ErrUnavailable),
		errors.Is(err, waybill.ErrOutcomeUnknown), errors.Is(err, waybill.ErrOwned):
		return nil, true, err // it may exist
	case !errors.Is(err, waybill.ErrNotFound):
		return nil, false, err
	}
	pulled, err := a.mayHaveBeenPulled(imageRef)
	if err != nil {
		return nil, false, err
	}
	if pulled {
		return &kubeletconfig.ImagePulledRecord{ImageRef: imageRef}, true, nil
	}
	return nil, false, nil
}

func (a *RecordsAccessor) writeRecord(logger klog.Logger, record *kubeletconfig.ImagePulledRecord) error {
	if record == nil {
		return errors.New("the ImagePulledRecord is nil")
	}
	if err := a.store.PutImage(context.Background(), waybill.PutImage{Record: recordToStore(record)}); err != nil {
		return err
	}
	a.metrics.note(logger, a.store)
	_, err := a.files.putRight(logger, nil)
	return err
}

// intentsOf returns the first of the pulls of each image string and handler that may bring something.
func intentsOf(store *store.Store) ([]waybill.UnresolvedPull, error) {
	listed, err := store.ListPulls(context.Background(), waybill.ListPulls{})
	type copy struct{ image, handler string }
	seen := map[copy]bool{}
	intents := slices.DeleteFunc(listed.Pulls, func(pull waybill.UnresolvedPull) bool {
		of := copy{pull.Image, pull.RuntimeHandler}
		again := seen[of]
		seen[of] = true
		return again || pull.AnyImage || pull.State == waybill.StateDropped
	})
	return intents, err
}

func (a *RecordsAccessor) deleteRecord(logger klog.Logger, imageRef string) error {
	if imageRef == "" {
		return nil // no record has such a ref
	}
	if err := a.store.DeleteImage(context.Background(), waybill.DeleteImage{ImageRef: imageRef}); err != nil {
		return err
	}
	a.files.putRight(logger, nil)
	a.metrics.note(logger, a.store)
	return nil
}

// mayHaveBeenPulled says whether a ref without a record may have been pulled, and so must not be
// presumed preloaded.
func (a *RecordsAccessor) mayHaveBeenPulled(imageRef string) (bool, error) {
	status, err := a.store.GetStatus(context.Background(), waybill.GetStatus{Brief: true})
	if err != nil || status.Degraded {
		return err == nil, err
	}
	if status.Counts.OtherHandlerRecords == 0 {
		return false, nil
	}
	stored, err := a.store.ListImages(context.Background(), waybill.ListImages{})
	return slices.ContainsFunc(stored.Records, func(r waybill.PulledRecord) bool { return r.ImageRef == imageRef }), err
}

// unreadable returns an error for each file of the kind in quarantine, or for that of an identity.
func (a *RecordsAccessor) unreadable(kind waybill.QuarantineKind, identity ...string) error {
	if !a.quarantine.Load() {
		return nil
	}
	stored, err := a.store.ListImages(context.Background(), waybill.ListImages{})
	if err != nil {
		return err
	}
	if len(stored.Quarantined) == 0 {
		a.quarantine.Store(false)
	}
	var failures []error
	for _, file := range stored.Quarantined {
		if file.Kind == kind && (len(identity) == 0 || file.SHA256 == fmt.Sprintf("%x", sha256.Sum256([]byte(identity[0])))) {
			failures = append(failures, fmt.Errorf("%s could not be read: %s: %w", file.File, file.Reason, waybill.ErrDamaged))
		}
	}
	return utilerrors.NewAggregate(failures)
}
