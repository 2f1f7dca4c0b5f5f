#compdef hexad
# zsh completion for hexad: source <(hexad completion zsh) after compinit, or a file _hexad in a folder of $fpath.
# The program itself is asked what may come next.
_hexad() {
  local line files=
  local -a plain described open
  for line in "${(@f)$("${words[1]}" __complete "${(@)words[2,CURRENT]}" 2> /dev/null)}"; do
    case $line in
      '') ;;
      :files) files=1 ;;
      *$'\t'*) described+=("${${line%%$'\t'*}//:/\\:}:${line#*$'\t'}") ;;
      *[.=]) open+=("$line") ;;
      *) plain+=("$line") ;;
    esac
  done
  (( $#described )) && _describe -V hexad described
  (( $#open )) && compadd -S '' -- $open
  (( $#plain )) && compadd -- $plain
  if [[ -n $files ]]; then
    compset -P '*='
    _files
  fi
}
if [[ ${funcstack[1]} == _hexad ]]; then _hexad "$@"; else compdef _hexad hexad; fi
