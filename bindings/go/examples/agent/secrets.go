package main

import "waybill.dev/go"

// secretOf is the tenant's secret as it is now.
func (a *agent) secretOf(tenant int) waybill.ImagePullSecret {
	return secretOf(tenant, a.model.deletionsOf(tenant), a.generations[tenant].Load())
}

func coordinatesOf(secret waybill.ImagePullSecret) waybill.CredentialName {
	return waybill.CredentialName{Namespace: secret.Namespace, Name: secret.Name, UID: secret.UID}
}

// deleteSecret deletes the tenant's secret, and creates one with other credentials. Images that the
// old one opened must be pulled again.
func (a *agent) deleteSecret(tenant int) error {
	// A pull that is under way now would prove nothing, though it succeeds.
	a.collecting.Lock()
	defer a.collecting.Unlock()
	old := a.secretOf(tenant)
	if err := a.model.note("deleted", tenantName(tenant)); err != nil {
		return err
	}
	report, err := a.store.ForgetSecret(coordinatesOf(old))
	if err != nil {
		return err
	}
	a.log.info("Secret was deleted", "namespace", old.Namespace, "uid", old.UID, "records", report.Records)
	for image := range images {
		if preloaded(image) || public(image) {
			continue
		}
		copy := waybill.ImageCopy{Image: imageName(image), ImageRef: a.runtime.ref(image)}
		if !a.store.MustAttemptPull(copy, waybill.PodCredentials{Secrets: []waybill.ImagePullSecret{old}}).Pull() {
			a.violation("a secret that was deleted opens an image", "namespace", old.Namespace, "image", copy.Image)
		}
	}
	return a.model.note("forgotten", tenantName(tenant))
}

// forgetDeleted forgets the secrets that were deleted when an earlier process was killed before it
// could. This world's list of secrets is always whole.
func (a *agent) forgetDeleted() error {
	token, err := a.store.BeginList() // before the list
	if err != nil {
		return err
	}
	var exist waybill.ExistingCredentials
	for tenant := range tenants {
		exist.Secrets = append(exist.Secrets, coordinatesOf(a.secretOf(tenant)))
	}
	report, err := a.store.Reconcile(exist, token)
	if err == nil && report.Gone > 0 {
		a.log.always("Forgot secrets that are gone", "secrets", report.Gone, "records", report.Forgotten.Records)
	}
	return err
}
