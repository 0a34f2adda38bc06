package kubelet

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"

	utilerrors "k8s.io/apimachinery/pkg/util/errors"
	"k8s.io/klog/v2"
	kubeletconfig "k8s.io/kubernetes/pkg/kubelet/apis/config"
	"k8s.io/kubernetes/pkg/kubelet/images/pullmanager"
	"waybill.dev/go"
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
	store   *waybill.Store
	metrics *kubeletMetrics
	files   *closedFiles // nil: none
	// Whether something may be in quarantine. Only opening makes entries, so once it is empty it stays
	// empty.
	quarantine atomic.Bool
}

// NewRecordsAccessor replaces pullmanager.NewFSPullRecordsAccessor. The store stays the caller's: close
// it once the accessor is no longer used. It needs waybill.RulesKubelet, as OpenStore opens it with
// Setup.ForAccessor: the kubelet's PullManager decides, and takes an image without a record for
// preloaded, which the closed rules do not. Open it without ImagesOnNode, since the PullManager replays
// intents itself.
func NewRecordsAccessor(store *waybill.Store) (*RecordsAccessor, error) {
	if store != nil && store.Rules() != waybill.RulesKubelet {
		return nil, errors.New("the store has the closed rules, but the kubelet's own manager decides by its own: " +
			"open it with RulesKubelet (Setup.ForAccessor), or use NewImagePullManager; the store was left as it is")
	}
	accessor, err := newRecordsAccessor(store)
	if err == nil {
		accessor.files = closedFilesOf(store)
		accessor.files.begin()
		accessor.files.afterRecords(klog.Background(), func(waybill.ImagePulledRecord) bool { return true })
	}
	return accessor, err
}

func newRecordsAccessor(store *waybill.Store) (*RecordsAccessor, error) {
	if store == nil {
		return nil, errNilStore
	}
	statistics, err := store.Statistics()
	if err != nil {
		return nil, fmt.Errorf("read the waybill store: %w", err)
	}
	accessor := &RecordsAccessor{store: store, metrics: sharedMetrics()}
	accessor.quarantine.Store(statistics.QuarantineEntries > 0)
	accessor.metrics.noteIntents(klog.Background(), store)
	accessor.metrics.noteRecords(klog.Background(), store)
	shownStore().store.Store(store)
	return accessor, nil
}

// ListImagePullIntents lists the intents of the default runtime handler.
func (a *RecordsAccessor) ListImagePullIntents() ([]*kubeletconfig.ImagePullIntent, error) {
	stored, err := a.store.ListIntents()
	if err != nil {
		return nil, err
	}
	var intents []*kubeletconfig.ImagePullIntent
	for _, intent := range stored {
		if intent.RuntimeHandler == "" {
			intents = append(intents, &kubeletconfig.ImagePullIntent{Image: intent.Image})
		}
	}
	return intents, a.unreadable(waybill.QuarantinedImage)
}

// ImagePullIntentExists returns false and an error for an intent that can't be read. Another runtime
// handler's intent counts: the image was not preloaded.
func (a *RecordsAccessor) ImagePullIntentExists(image string) (bool, error) {
	if err := a.quarantined(waybill.QuarantinedImage, image); err != nil {
		return false, err
	}
	exists, err := a.store.HasIntent(waybill.ImageCopy{Image: image})
	if exists || err != nil {
		return exists, err
	}
	stored, err := a.store.ListIntents()
	return slices.ContainsFunc(stored, func(intent waybill.ImagePullIntent) bool { return intent.Image == image }), err
}

func (a *RecordsAccessor) writeIntent(logger klog.Logger, image string) error {
	release, err := a.files.hold(intentFiles(image)...)
	defer release()
	if err != nil {
		return err
	}
	if err := a.store.PutIntent(waybill.ImageCopy{Image: image}); err != nil {
		return err
	}
	a.metrics.noteIntents(logger, a.store)
	return nil
}

func (a *RecordsAccessor) deleteIntent(logger klog.Logger, image string) error {
	if err := a.store.DeleteIntent(waybill.ImageCopy{Image: image}); err != nil {
		return err
	}
	a.files.dropIntents(logger, image)
	a.metrics.noteIntents(logger, a.store)
	return nil
}

// ListImagePulledRecords lists the records of the default runtime handler.
func (a *RecordsAccessor) ListImagePulledRecords() ([]*kubeletconfig.ImagePulledRecord, error) {
	stored, err := a.store.ListRecords()
	if err != nil {
		return nil, err
	}
	var records []*kubeletconfig.ImagePulledRecord
	for _, record := range stored {
		if record.RuntimeHandler == "" {
			records = append(records, recordToKubelet(record))
		}
	}
	return records, a.unreadable(waybill.QuarantinedImageRef)
}

// GetImagePulledRecord returns exists=true and an error for a record that exists but can't be read.
func (a *RecordsAccessor) GetImagePulledRecord(imageRef string) (*kubeletconfig.ImagePulledRecord, bool, error) {
	if err := a.quarantined(waybill.QuarantinedImageRef, imageRef); err != nil {
		return nil, true, err
	}
	record, err := a.store.GetRecord(waybill.ImageCopy{ImageRef: imageRef})
	switch {
	case err == nil:
		return recordToKubelet(record), true, nil
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
	release, err := a.files.hold(recordFile(record.ImageRef))
	defer release()
	if err != nil {
		return err
	}
	if err := a.store.PutRecord(recordToStore(record)); err != nil {
		return err
	}
	a.metrics.noteRecords(logger, a.store)
	return nil
}

func (a *RecordsAccessor) deleteRecord(logger klog.Logger, imageRef string) error {
	if imageRef == "" {
		return nil // no record has such a ref
	}
	if err := a.store.DeleteRecord(waybill.ImageCopy{ImageRef: imageRef}); err != nil {
		return err
	}
	a.files.dropRecord(logger, imageRef)
	a.metrics.noteRecords(logger, a.store)
	return nil
}

// mayHaveBeenPulled says whether a ref without a record may have been pulled, and so must not be
// presumed preloaded.
func (a *RecordsAccessor) mayHaveBeenPulled(imageRef string) (bool, error) {
	statistics, err := a.store.Statistics()
	if err != nil || statistics.Distrustful {
		return err == nil, err
	}
	if statistics.NondefaultHandlerRecords == 0 {
		return false, nil
	}
	records, err := a.store.ListRecords()
	return slices.ContainsFunc(records, func(r waybill.ImagePulledRecord) bool { return r.ImageRef == imageRef }), err
}

func (a *RecordsAccessor) listQuarantine() ([]waybill.QuarantineEntry, error) {
	if !a.quarantine.Load() {
		return nil, nil
	}
	entries, err := a.store.ListQuarantine()
	if err == nil && len(entries) == 0 {
		a.quarantine.Store(false)
	}
	return entries, err
}

// quarantined returns an error if the identity is in quarantine, since its file can't be read.
func (a *RecordsAccessor) quarantined(kind waybill.QuarantineKind, identity string) error {
	entries, err := a.listQuarantine()
	if err != nil || len(entries) == 0 {
		return err
	}
	sum := sha256.Sum256([]byte(identity))
	name := hex.EncodeToString(sum[:])
	for _, entry := range entries {
		if entry.Kind == kind && entry.SHA256 == name {
			return unreadableError(entry)
		}
	}
	return nil
}

func (a *RecordsAccessor) unreadable(kind waybill.QuarantineKind) error {
	entries, err := a.listQuarantine()
	if err != nil {
		return err
	}
	var failures []error
	for _, entry := range entries {
		if entry.Kind == kind {
			failures = append(failures, unreadableError(entry))
		}
	}
	return utilerrors.NewAggregate(failures)
}

func unreadableError(entry waybill.QuarantineEntry) error {
	return fmt.Errorf("%s could not be read: %s: %w", entry.Source, entry.Reason, waybill.ErrDamaged)
}
