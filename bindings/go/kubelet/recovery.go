package kubelet

import (
	"context"
	"strconv"

	"k8s.io/klog/v2"
	"waybill.dev/go"
	"waybill.dev/go/store"
)

// This many entries of each list in a report are logged.
const loggedAtMost = 50

// logOpening logs what opening found. What an operator should look at is an error.
func logOpening(ctx context.Context, logger klog.Logger, store *store.Store) {
	status, err := store.GetStatus(ctx, waybill.GetStatus{})
	if err != nil || status.Opening == nil {
		logger.Error(err, "Failed to read the waybill store's status")
		return
	}
	r := *status.Opening
	for _, path := range r.RemovedPaths {
		logger.Info("Deleted a database of the waybill store that was set aside earlier", "path", path)
	}
	if r.RebuiltFrom != "" {
		logger.Error(nil, "The waybill store was damaged; it was set aside, and made anew from what could be read", "setAside", r.RebuiltFrom,
			"records", r.RecordsCarried, "recordsWithoutCredentials", r.RecordsWithoutCredentials, "intents", r.PullsCarried)
	}
	logEach(r.Findings, func(finding string) { logger.Error(nil, "The waybill store had damage", "finding", finding) })
	if r.Degraded {
		logger.Error(nil, "The waybill store is degraded: an image without a record must be pulled. `waybill trust` shows since when, and clears it", "reason", r.DegradedBecause)
	}
	if r.QuarantinedFiles > 0 {
		logger.Error(nil, "Files that could not be read keep their images closed. `waybill list --quarantine` shows them", "entries", r.QuarantinedFiles)
	}
	if r.Unrecorded {
		logger.Info("Images may have been pulled that nobody recorded: those on the node without a record are closed until they are pulled again",
			"reason", r.UnrecordedBecause, "closed", r.Closed, "images", first(r.ClosedImages))
	}
	logEach(r.Imported.Problems, func(problem string) {
		logger.Error(nil, "A file of the kubelet could not be taken over", "problem", problem)
	})
	if taken := r.Imported.Records + r.Imported.Intents + r.Imported.Preloaded; taken > 0 || r.Imported.Interrupted {
		logger.Info("Took over what the kubelet's own manager left", "records", r.Imported.Records, "intents", r.Imported.Intents,
			"preloaded", r.Imported.Preloaded, "interrupted", r.Imported.Interrupted)
	}
	if r.PullsFound > 0 {
		logger.Info("Pulls were under way when the kubelet before ended", "found", r.PullsFound, "closed", r.PullsReplayed,
			"left", r.PullsLeft, "images", first(r.Replayed))
	}
	if r.ReplaySkipped {
		logger.Info("Pulls that were under way are not judged: there is no list of the images on the node")
	}
	if r.Classified != nil {
		if r.Classified.NothingBecause != "" {
			logger.Info("No image was judged", "because", r.Classified.NothingBecause)
		}
		for _, image := range first(r.Classified.Classified) {
			logger.V(2).Info("Judged an image that no record tells of", "image", image.Name, "imageRef", image.ImageRef, "preloaded", image.Open, "because", image.Because)
		}
	}
	u := r.IDMappings
	logEach(u.Problems, func(problem string) {
		logger.Error(nil, "A pod's user namespace could not be taken over", "problem", problem)
	})
	if u.QuarantinedPods > 0 {
		logger.Error(nil, "Pods whose host IDs are not known get no user namespace. `waybill userns list` shows them", "pods", u.QuarantinedPods)
	}
	if u.RefusedBecause != "" {
		logger.Error(nil, "No new user namespaces are given out", "because", u.RefusedBecause)
	}
	if u.OutsidePool+u.OtherLength > 0 {
		logger.Info("Pods have host IDs that the pool, as it is configured now, would not give", "outside", u.OutsidePool, "otherLength", u.OtherLength, "pods", first(u.OffPool))
	}
	if r.ClockWasAhead != "" {
		logger.Info("The clock was ahead when the waybill store was last written", "was", r.ClockWasAhead, "recordsMended", r.TimesMended)
	}
	if r.CommitUndone {
		logger.Info("A crash had cut the last commit short, of which nobody was told; it is undone")
	}
	if r.Migration != nil {
		logger.Info("Migrated the waybill store", "from", r.Migration.From, "to", r.Migration.To)
	}
	logEach(r.Mended, func(mended string) { logger.Info("Made a mode strict", "mended", mended) })
	logEach(r.Warnings, func(warning string) { logger.Info("The waybill store warns", "warning", warning) })
	logger.Info("Opened the waybill store", "created", r.Created, "firstStart", r.FirstStart, "records", r.Records, "intents", r.PullsLeft,
		"userNamespaces", u.Mappings, "commitSequence", r.Commit)
	images, err := store.ListImages(ctx, waybill.ListImages{})
	unconfirmed := 0
	for _, image := range images.Preloaded {
		if image.Source == "unconfirmed" && image.AbsentSince.IsZero() {
			unconfirmed++
		}
	}
	if unconfirmed > 0 || err != nil {
		logger.Info("Images count as preloaded, since they were there at the first start. `waybill allow` and `deny` settle them", "images", unconfirmed, "err", err)
	}
}

func logEach(lines []string, log func(string)) {
	for _, line := range first(lines) {
		log(line)
	}
	if more := len(lines) - loggedAtMost; more > 0 {
		log("and " + strconv.Itoa(more) + " more")
	}
}

func first[T any](entries []T) []T { return entries[:min(len(entries), loggedAtMost)] }
