import { docker, type Portreeve } from './portreeve.ts'

/** The id of the container that is the edge of this installation, beside those of others. */
export const edgeContainer = ({ data_directory }: Portreeve): string =>
  docker('ps', '-aq', '--filter', 'label=portreeve.edge')
    .split('\n')
    .find(
      (id) => id !== '' && docker('inspect', id, '--format', '{{json .Mounts}}').includes(data_directory),
    )!
