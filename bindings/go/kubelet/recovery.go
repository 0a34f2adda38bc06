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
	r, u := *status.Opening, status.Opening.IDMappings
	bad := func(what string, with ...any) { logger.Error(nil, what, with...) }
	for _, each := range []struct {
		log   func(what string, with ...any)
		what  string
		key   string
		lines []string
	}{
		{logger.Info, "Deleted a database of the waybill store that was set aside earlier", "path", r.RemovedPaths},
		{bad, "The waybill store had damage", "finding", r.Findings},
		{bad, "A file of the kubelet could not be taken over", "problem", r.Imported.Problems},
		{bad, "A pod's user namespace could not be taken over", "problem", u.Problems},
		{logger.Info, "Made a mode strict", "mended", r.Mended},
		{logger.Info, "The waybill store warns", "warning", r.Warnings},
	} {
		for _, line := range first(each.lines) {
			each.log(each.what, each.key, line)
		}
		if more := len(each.lines) - loggedAtMost; more > 0 {
			each.log(each.what, each.key, "and "+strconv.Itoa(more)+" more")
		}
	}
	for _, each := range []struct {
		found bool
		log   func(what string, with ...any)
		what  string
		with  []any
	}{
		{r.RebuiltFrom != "", bad, "The waybill store was damaged; it was set aside, and made anew from what could be read",
			[]any{"setAside", r.RebuiltFrom, "records", r.RecordsCarried, "recordsWithoutCredentials", r.RecordsWithoutCredentials, "intents", r.PullsCarried}},
		{r.Degraded, bad, "The waybill store is degraded: an image without a record must be pulled. `waybill trust` shows since when, and clears it",
			[]any{"reason", r.DegradedBecause}},
		{r.QuarantinedFiles > 0, bad, "Files that could not be read keep their images closed. `waybill list --quarantine` shows them",
			[]any{"entries", r.QuarantinedFiles}},
		{r.Unrecorded, logger.Info, "Images may have been pulled that nobody recorded: those on the node without a record are closed until they are pulled again",
			[]any{"reason", r.UnrecordedBecause, "closed", r.Closed, "images", first(r.ClosedImages)}},
		{r.Imported.Records+r.Imported.Intents+r.Imported.Preloaded > 0 || r.Imported.Interrupted, logger.Info, "Took over what the kubelet's own manager left",
			[]any{"records", r.Imported.Records, "intents", r.Imported.Intents, "preloaded", r.Imported.Preloaded, "interrupted", r.Imported.Interrupted}},
		{r.PullsFound > 0, logger.Info, "Pulls were under way when the kubelet before ended",
			[]any{"found", r.PullsFound, "closed", r.PullsReplayed, "left", r.PullsLeft, "images", first(r.Replayed)}},
		{r.ReplaySkipped, logger.Info, "Pulls that were under way are not judged: there is no list of the images on the node", nil},
		{u.QuarantinedPods > 0, bad, "Pods whose host IDs are not known get no user namespace. `waybill userns list` shows them",
			[]any{"pods", u.QuarantinedPods}},
		{u.RefusedBecause != "", bad, "No new user namespaces are given out", []any{"because", u.RefusedBecause}},
		{u.OutsidePool+u.OtherLength > 0, logger.Info, "Pods have host IDs that the pool, as it is configured now, would not give",
			[]any{"outside", u.OutsidePool, "otherLength", u.OtherLength, "pods", first(u.OffPool)}},
		{r.CommitUndone, logger.Info, "A crash had cut the last commit short, of which nobody was told; it is undone", nil},
		{r.Migration != nil, logger.Info, "Migrated the waybill store", []any{"steps", r.Migration}},
		{true, logger.Info, "Opened the waybill store", []any{"created", r.Created, "firstStart", r.FirstStart, "records", r.Records,
			"intents", r.PullsLeft, "userNamespaces", u.Mappings, "commitSequence", r.Commit}},
	} {
		if each.found {
			each.log(each.what, each.with...)
		}
	}
	if r.Classified != nil {
		logClassified(logger, *r.Classified)
	}
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

// logClassified logs what became of the images of a list.
func logClassified(logger klog.Logger, report waybill.ClassifyReport) {
	for _, image := range report.Classified {
		logger.V(2).Info("judged an image that no record tells of", "image", image.Name, "imageRef", image.ImageRef, "preloaded", image.Open, "because", image.Because)
	}
	if report.NothingBecause != "" {
		logger.V(2).Info("no image was judged", "because", report.NothingBecause)
	}
}

func first[T any](entries []T) []T { return entries[:min(len(entries), loggedAtMost)] }
