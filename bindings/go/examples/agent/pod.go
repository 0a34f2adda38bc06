package main

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"waybill.dev/go"
)

var errNoSecrets = errors.New("secrets of the pod could not be fetched")

// step starts one pod. Sometimes it also collects garbage, or rotates or deletes a secret.
func (a *agent) step(choices *rand.Rand, number int64) error {
	if number%200 == 0 {
		return a.collect(choices)
	}
	if number%150 == 0 {
		return a.deleteSecret(choices.IntN(tenants))
	}
	if choices.IntN(50) == 0 {
		tenant := choices.IntN(tenants)
		a.log.info("Secret was rotated", "namespace", tenantName(tenant), "generation", a.generations[tenant].Add(1))
	}
	a.collecting.RLock()
	defer a.collecting.RUnlock()
	pod := fmt.Sprintf("%08x-%04x-4000-8000-%012x", choices.Uint32(), choices.IntN(1<<16), number)
	tenant, image := choices.IntN(tenants), choices.IntN(images)
	if choices.IntN(4) == 0 {
		if err := a.userNamespace(pod); err != nil {
			return err
		}
		defer a.releaseUserNamespace(pod)
	}
	return a.startContainer(choices, pod, tenant, image)
}

func (a *agent) startContainer(choices *rand.Rand, pod string, tenant, image int) error {
	policy := waybill.PullIfNotPresent
	switch choices.IntN(10) {
	case 0:
		policy = waybill.PullAlways
	case 1:
		policy = waybill.PullNever
	}
	noSecrets := choices.IntN(40) == 0
	secret := a.secretOf(tenant)
	fetch := func() (waybill.PodCredentials, error) {
		if noSecrets {
			return waybill.PodCredentials{}, errNoSecrets
		}
		return waybill.PodCredentials{Secrets: []waybill.ImagePullSecret{secret}}, nil
	}

	ref, must := a.runtime.ref(image), a.model.mustUse(image, tenant)
	outcome, err := a.store.EnsureImage(waybill.ImageCopy{Image: imageName(image), ImageRef: ref}, policy, fetch)
	if err != nil && !errors.Is(err, errNoSecrets) {
		return err
	}
	a.check(outcome, err, pod, tenant, image, ref, must)
	switch outcome.Action {
	case waybill.EnsureUsePresent:
		a.log.info("Container image already present on machine", "pod", pod, "namespace", tenantName(tenant), "image", imageName(image))
		return nil
	case waybill.EnsurePull:
		return a.pull(choices, pod, tenant, image, secret)
	default:
		a.log.info("Failed to start container", "pod", pod, "reason", outcome.Action, "message", outcome.Message)
		return nil
	}
}

// check compares an answer with the model.
func (a *agent) check(outcome waybill.EnsureOutcome, failed error, pod string, tenant, image int, ref string, must bool) {
	about := []any{"pod", pod, "namespace", tenantName(tenant), "image", imageName(image), "action", outcome.Action}
	if d := outcome.Decision; d != nil {
		about = append(about, "reason", d.Reason)
		if d.Pull() && must && ref != "" && failed == nil {
			a.violation("a pod that pulled the image before was made to pull it again", about...)
		}
		if d.Reason == waybill.ReasonPolicyKnownPreloaded && !preloaded(image) {
			a.violation("an image that was pulled passes for one that was always there", about...)
		}
	}
	if outcome.Action == waybill.EnsureUsePresent && (ref == "" || !a.model.mayUse(image, tenant)) {
		a.violation("a pod may use an image that it never could pull", about...)
	}
}

// pull asks the registry, between an intent and its outcome.
func (a *agent) pull(choices *rand.Rand, pod string, tenant, image int, secret waybill.ImagePullSecret) error {
	name, ref := imageName(image), imageRef(image)
	id, err := a.store.RecordPullIntent(waybill.ImageCopy{Image: name})
	if err != nil {
		return err
	}
	a.log.info("Pulling image", "pod", pod, "namespace", tenantName(tenant), "image", name)
	time.Sleep(time.Duration(choices.IntN(2000)) * time.Microsecond)

	switch {
	case choices.IntN(30) == 0: // the runtime did not answer in time; the image may arrive all the same
		if allows(image, tenant) && choices.IntN(2) == 0 {
			if err := a.runtime.arrive(image); err != nil {
				return err
			}
		}
		a.log.info("Failed to pull image", "pod", pod, "image", name, "err", "context deadline exceeded")
		return a.store.RecordImagePullFailed(waybill.ImageCopy{Image: name}, waybill.PullOutcomeUnknown, id)
	case !allows(image, tenant):
		a.log.info("Failed to pull image", "pod", pod, "namespace", tenantName(tenant), "image", name, "err", "pull access denied")
		failure := waybill.PullNothingTransferred
		if a.runtime.ref(image) != "" { // asked after the error
			failure = waybill.PullFailed
		}
		return a.store.RecordImagePullFailed(waybill.ImageCopy{Image: name}, failure, id)
	}
	if err := a.runtime.arrive(image); err != nil {
		return err
	}
	credentials := &waybill.ImagePullCredentials{KubernetesSecrets: []waybill.ImagePullSecret{secret}}
	if public(image) {
		credentials = &waybill.ImagePullCredentials{NodePodsAccessible: true}
	}
	if err := a.model.note("may", entry(image, tenant)); err != nil {
		return err
	}
	err = a.store.RecordImagePulled(waybill.PulledImage{
		ImageCopy: waybill.ImageCopy{Image: name, ImageRef: ref}, Credentials: credentials, Pull: id,
	})
	if err != nil {
		return err
	}
	a.log.info("Successfully pulled image", "pod", pod, "namespace", tenantName(tenant), "image", name, "ref", ref)
	return a.model.note("done", entry(image, tenant))
}
