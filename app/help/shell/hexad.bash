# bash completion for hexad: source <(hexad completion bash), or a file in ~/.local/share/bash-completion/completions.
# The program itself is asked what may come next.
_hexad() {
  local word files= line about
  local IFS=$'\n'
  # Readline breaks words at : and =, which stand within overrides and files.
  local before=${COMP_LINE:0:COMP_POINT}
  local -a words=()
  IFS=$' \t' read -ra words <<< "$before"
  [[ $before == *[[:space:]] ]] && words+=("")
  word=${words[-1]}
  COMPREPLY=()
  while IFS=$'\t' read -r line about; do
    if [[ $line == :files ]]; then files=1; continue; fi
    COMPREPLY+=("$line")
  done < <("${words[0]}" __complete "${words[@]:1}" 2> /dev/null)
  local end=${word##*[=]}
  if [[ -n $files ]]; then
    compopt -o filenames 2> /dev/null
    COMPREPLY+=($(compgen -f -- "$end"))
    return
  fi
  [[ ${#COMPREPLY[@]} == 1 && ${COMPREPLY[0]} == *[.=] ]] && compopt -o nospace 2> /dev/null
  return 0
}
complete -F _hexad hexad
