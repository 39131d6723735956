import { Argument } from 'commander'
import { say } from './terminal.ts'
import { defineVerb } from './verb.ts'

/** Each asks the command itself what may come next, so that a new verb needs no new script. */
const SCRIPTS = {
  bash: `_portreeve() {
  local IFS=$'\\n'
  COMPREPLY=($(portreeve complete -- "\${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null))
}
complete -o default -F _portreeve portreeve`,
  zsh: `#compdef portreeve
_portreeve() {
  local -a found
  found=(\${(f)"$(portreeve complete -- "\${(@)words[2,CURRENT]}" 2>/dev/null)"})
  if (( \${#found} )); then compadd -a found; else _files; fi
}
compdef _portreeve portreeve`,
  // Files only where nothing else can come next: by itself fish offers them with everything.
  fish: `function __portreeve_complete
  set -l found (portreeve complete -- (commandline -opc)[2..-1] (commandline -ct) 2>/dev/null)
  if set -q found[1]
    printf '%s\\n' $found
  else
    __fish_complete_path (commandline -ct)
  end
end
complete -c portreeve -f -a '(__portreeve_complete)'`,
} as const

export default defineVerb((verb) => {
  verb
    .description(
      `Prints what makes a shell complete commands, options, apps and contexts:

  bash  source <(portreeve completion bash)      in ~/.bashrc
  zsh   source <(portreeve completion zsh)       in ~/.zshrc, after compinit
  fish  portreeve completion fish | source       in ~/.config/fish/config.fish`,
    )
    .addArgument(new Argument('<shell>', 'the shell').choices(Object.keys(SCRIPTS)))
    .action((shell: keyof typeof SCRIPTS) => say(SCRIPTS[shell]))
})
