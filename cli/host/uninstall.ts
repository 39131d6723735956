import { uninstall, type SetupOptions } from '../setup/setup.ts'
import { defineVerb } from '../verb.ts'

export default defineVerb((verb) => {
  verb
    .description(
      'Takes the service, the command and the program of portreeve setup away. Apps serve on, and data stay; how to remove those is printed.',
    )
    .option('--data-dir <folder>', 'where everything is kept', '/var/lib/portreeve')
    .option('--bin-dir <folder>', 'where the command portreeve is linked', '/usr/local/bin')
    .action((options: SetupOptions) => uninstall(options))
})
