package kubelet

import (
	"strconv"

	"k8s.io/klog/v2"
	"waybill.dev/go"
)

// This many entries of each list in a report are logged.
const loggedAtMost = 50

// logRecovery logs what opening found. What an operator should look at is an error.
func logRecovery(logger klog.Logger, r waybill.RecoveryReport) {
	for _, path := range r.RemovedPaths {
		logger.Info("Deleted a database of the waybill store that was set aside earlier", "path", path)
	}
	if r.SetAside {
		logger.Error(nil, "The waybill store was damaged; it was set aside, and made anew from what could be read", "setAside", r.SetAsidePath,
			"records", r.RecordsCarried, "recordsWithoutCredentials", r.RecordsWithoutCredentials, "intents", r.IntentsCarried)
	}
	logEach(r.Findings, func(finding string) { logger.Error(nil, "The waybill store had damage", "finding", finding) })
	if r.Distrustful {
		logger.Error(nil, "The waybill store is distrustful: an image without a record must be pulled. `waybill trust` shows since when, and clears it", "reason", r.DistrustReason)
	}
	if r.QuarantineEntries > 0 {
		logger.Error(nil, "Files that could not be read keep their images closed. `waybill list --quarantine` shows them", "entries", r.QuarantineEntries)
	}
	if r.AfterGap {
		logger.Info("Images may have been pulled that nobody recorded: those on the node without a record are closed until they are pulled again",
			"reason", r.GapReason, "closed", r.GapClosed, "images", first(r.GapImages))
	}
	logEach(r.Import.Problems, func(problem string) {
		logger.Error(nil, "A file of the kubelet could not be taken over", "problem", problem)
	})
	if taken := r.Import.Records + r.Import.Intents + r.Import.Preloaded; taken > 0 || r.Import.Interrupted {
		logger.Info("Took over what the kubelet's own manager left", "records", r.Import.Records, "intents", r.Import.Intents,
			"preloaded", r.Import.Preloaded, "interrupted", r.Import.Interrupted)
	}
	if r.IntentsFound > 0 {
		logger.Info("Pulls were under way when the kubelet before ended", "found", r.IntentsFound, "closed", r.IntentsReplayed,
			"left", r.IntentsLeft, "images", first(r.Replayed))
	}
	if r.ReplaySkipped {
		logger.Info("Pulls that were under way are not judged: there is no list of the images on the node")
	}
	if r.Observed != nil {
		if r.Observed.NotJudgedBecause != "" {
			logger.Info("No image was judged", "because", r.Observed.NotJudgedBecause)
		}
		for _, image := range first(r.Observed.Judged) {
			logger.V(2).Info("Judged an image that no record tells of", "image", image.Name, "imageRef", image.ImageRef, "preloaded", image.Preloaded, "because", image.Because)
		}
	}
	u := r.UserNamespaces
	logEach(u.Problems, func(problem string) {
		logger.Error(nil, "A pod's user namespace could not be taken over", "problem", problem)
	})
	if u.HeldPods > 0 {
		logger.Error(nil, "Pods whose host IDs are not known get no user namespace. `waybill userns list` shows them", "pods", u.HeldPods)
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
	logger.Info("Opened the waybill store", "created", r.Created, "firstStart", r.FirstStart, "records", r.Records, "intents", r.IntentsLeft,
		"userNamespaces", u.Allocations, "commitSequence", r.CommitSequence)
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
