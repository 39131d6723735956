import { Deployment } from '#server/deployments/schema'
import { MAX_UPLOAD_BYTES } from '#server/deployments/upload'
import { endpoint } from '#server/endpoint'
import { data, IdParam } from '#server/http/schemas'

export default endpoint({
  summary: 'Deploy an uploaded source folder',
  description:
    'The body is a gzipped tar of the folder, at most 512 MiB, for an app whose source is `upload`. Links that leave the folder and device files are refused when it is unpacked.',
  access: 'developer',
  scope: { noun: 'app' },
  effect: 'deploy',
  params: IdParam,
  upload: {
    media_types: [
      'application/gzip',
      'application/x-gzip',
      'application/x-tar+gzip',
      'application/octet-stream',
    ],
    max_bytes: MAX_UPLOAD_BYTES,
  },
  status: 201,
  response: data(Deployment),
  errors: ['CONFLICT', 'ENGINE_UNAVAILABLE'],
  handler: async ({ actor, params, upload, services }) => ({
    data: await services.deployments.upload(actor, params.id, upload.stream, upload.content_length),
  }),
})
