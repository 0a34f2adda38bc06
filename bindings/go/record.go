package waybill

// #include "shim.h"
import "C"

import (
	"time"
	"unsafe"
)

// ImagePullSecret has the coordinates of a Kubernetes Secret and the hash of the credentials that it
// held ([HashCredentials]). The hash is opaque, and only compared. An empty hash matches nothing, but
// the coordinates still can.
type ImagePullSecret struct {
	UID, Namespace, Name, CredentialHash string
}

// ImagePullServiceAccount has the coordinates of a ServiceAccount.
type ImagePullServiceAccount struct {
	UID, Namespace, Name string
}

// PodCredentials is what a pod can pull with. Secrets are those of its imagePullSecrets that match the
// image.
type PodCredentials struct {
	Secrets        []ImagePullSecret
	ServiceAccount *ImagePullServiceAccount // nil: none
}

// ImagePullCredentials says which credentials opened an image under one image name. With
// NodePodsAccessible (pulled without credentials, or with the node's own) every pod of the node may
// use it. With nothing set, no pod may use it until it is pulled again.
type ImagePullCredentials struct {
	NodePodsAccessible        bool
	KubernetesSecrets         []ImagePullSecret
	KubernetesServiceAccounts []ImagePullServiceAccount
}

// ImagePulledRecord is one image on the node that the kubelet pulled. Names are those of the
// kubelet's own files (KEP-2535, "Cache Directory Structure").
type ImagePulledRecord struct {
	ImageRef        string
	LastUpdatedTime time.Time // zero: none
	// By image name: the container's image string without tag and digest, otherwise unchanged.
	CredentialMapping map[string]ImagePullCredentials
	// The commit that wrote the record. Set by the store; ignored as input.
	Stamp uint64
	// The handler whose copy of the image this is; empty: the default handler's (KEP-4216).
	RuntimeHandler string
	// The manifest of an index that was pulled, and its platform, if the caller said so.
	ManifestDigest string
	Platform       *Platform
	// The guest platform that the handler had when the image was pulled. Set by the store.
	GuestPlatform *Platform
	// Why the image was closed without a pull by this kubelet, if it was. Set by the store.
	ClosedBecause string
	// When the credentials of each image name in CredentialMapping were proven. Set by the store.
	Proofs map[string]CredentialProofs
}

func cSecret(a *arena, s *ImagePullSecret) C.waybill_image_pull_secret {
	return C.waybill_image_pull_secret{
		uid:             a.string(s.UID),
		namespace_name:  a.string(s.Namespace),
		name:            a.string(s.Name),
		credential_hash: a.string(s.CredentialHash),
	}
}

func goSecret(s *C.waybill_image_pull_secret) ImagePullSecret {
	return ImagePullSecret{
		UID:            goString(s.uid),
		Namespace:      goString(s.namespace_name),
		Name:           goString(s.name),
		CredentialHash: goString(s.credential_hash),
	}
}

func cServiceAccount(a *arena, s *ImagePullServiceAccount) C.waybill_image_pull_service_account {
	return C.waybill_image_pull_service_account{
		uid:            a.string(s.UID),
		namespace_name: a.string(s.Namespace),
		name:           a.string(s.Name),
	}
}

func goServiceAccount(s *C.waybill_image_pull_service_account) ImagePullServiceAccount {
	return ImagePullServiceAccount{
		UID:       goString(s.uid),
		Namespace: goString(s.namespace_name),
		Name:      goString(s.name),
	}
}

func cCredentials(a *arena, c *ImagePullCredentials) C.waybill_image_pull_credentials {
	out := C.waybill_image_pull_credentials{node_pods_accessible: C.bool(c.NodePodsAccessible)}
	out.secrets, out.secret_count = cList(a, c.KubernetesSecrets, cSecret)
	out.service_accounts, out.service_account_count =
		cList(a, c.KubernetesServiceAccounts, cServiceAccount)
	return out
}

func goCredentials(c *C.waybill_image_pull_credentials) ImagePullCredentials {
	return ImagePullCredentials{
		NodePodsAccessible:        bool(c.node_pods_accessible),
		KubernetesSecrets:         goList(c.secrets, c.secret_count, goSecret),
		KubernetesServiceAccounts: goList(c.service_accounts, c.service_account_count, goServiceAccount),
	}
}

func cImagePulledRecord(a *arena, r *ImagePulledRecord) (out C.waybill_image_pulled_record) {
	type entry struct {
		name        string
		credentials ImagePullCredentials
	}
	entries := make([]entry, 0, len(r.CredentialMapping))
	for name, credentials := range r.CredentialMapping {
		entries = append(entries, entry{name, credentials})
	}
	out.image_ref = a.string(r.ImageRef)
	out.last_updated = a.time(r.LastUpdatedTime)
	out.credential_mapping, out.credential_mapping_count =
		cList(a, entries, func(a *arena, e *entry) C.waybill_credential_mapping {
			return C.waybill_credential_mapping{
				image_name:  a.string(e.name),
				credentials: cCredentials(a, &e.credentials),
			}
		})
	out.runtime_handler = a.string(r.RuntimeHandler)
	out.manifest_digest = a.string(r.ManifestDigest)
	out.platform = cIfAny(a, r.Platform, cPlatform)
	return out
}

func goImagePulledRecord(r *C.waybill_image_pulled_record) ImagePulledRecord {
	record := ImagePulledRecord{
		ImageRef:        goString(r.image_ref),
		LastUpdatedTime: goTimeOrZero(r.last_updated),
		Stamp:           uint64(r.stamp),
		RuntimeHandler:  goString(r.runtime_handler),
		ManifestDigest:  goString(r.manifest_digest),
		Platform:        goIfAny(r.platform, goPlatform),
		GuestPlatform:   goIfAny(r.guest_platform, goPlatform),
		ClosedBecause:   goString(r.closed_because),
	}
	if n := int(r.credential_mapping_count); n > 0 {
		entries := unsafe.Slice(r.credential_mapping, n)
		record.CredentialMapping = make(map[string]ImagePullCredentials, n)
		for i := range entries {
			record.CredentialMapping[goString(entries[i].image_name)] = goCredentials(&entries[i].credentials)
		}
	}
	return record
}
