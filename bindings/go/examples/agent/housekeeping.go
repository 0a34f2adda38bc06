package main

import (
	"math/rand/v2"

	"waybill.dev/go"
)

// collect removes a few images from the node, and then lets the store judge the images that are
// left.
func (a *agent) collect(choices *rand.Rand) error {
	a.collecting.Lock()
	defer a.collecting.Unlock()
	// Drawn first: records that are written later are newer than the token, and are kept.
	if err := a.store.Flush(); err != nil {
		return err
	}
	token, err := a.store.BeginList() // before the list
	if err != nil {
		return err
	}
	var removed []string
	for range 3 {
		image := choices.IntN(images)
		if preloaded(image) || a.runtime.ref(image) == "" {
			continue
		}
		ref := imageRef(image)
		if err := a.model.note("gone", ref); err != nil {
			return err
		}
		if err := a.runtime.remove(ref); err != nil {
			return err
		}
		removed = append(removed, ref)
	}
	report, err := a.store.ObserveImages(waybill.ImageList{Images: a.runtime.list(), Token: &token, Complete: true}, waybill.AllowEmpty)
	if err != nil {
		return err
	}
	a.log.info("Removed unused images", "images", len(removed), "records", report.RecordsRemoved, "closed", report.Closed, "pullsSettled", report.PullsSettled)
	for _, ref := range removed {
		if err := a.model.note("pruned", ref); err != nil {
			return err
		}
	}
	return nil
}

// userNamespace gets host IDs for a pod, and checks that no other pod has any of them.
func (a *agent) userNamespace(pod string) error {
	hostUsers := false
	request := waybill.UserNamespaceRequest{PodUID: pod, HostUsers: &hostUsers}
	namespace, err := a.store.GetOrCreateUserNamespace(request)
	if err != nil {
		return err
	}
	mine := namespace.UIDs[0]
	a.log.info("Pod runs in a user namespace", "pod", pod, "hostID", mine.HostID, "length", mine.Length)
	a.ranges.Store(pod, mine)
	a.ranges.Range(func(other, theirs any) bool {
		r := theirs.(waybill.IDMapping)
		if other != pod && uint64(mine.HostID) < uint64(r.HostID)+uint64(r.Length) && uint64(r.HostID) < uint64(mine.HostID)+uint64(mine.Length) {
			a.violation("two pods share host IDs", "pod", pod, "other", other, "hostID", mine.HostID)
		}
		return true
	})
	again, err := a.store.GetOrCreateUserNamespace(request)
	if err == nil && again.UIDs[0] != mine {
		a.violation("a pod's host IDs changed", "pod", pod, "hostID", mine.HostID)
	}
	return err
}

func (a *agent) releaseUserNamespace(pod string) {
	a.ranges.Delete(pod)
	if _, err := a.store.ReleaseUserNamespace(pod); err != nil {
		a.violation("host IDs could not be released", "pod", pod, "err", err)
	}
}
