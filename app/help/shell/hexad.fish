# fish completion for hexad: hexad completion fish | source, or a file in ~/.config/fish/completions.
# The program itself is asked what may come next.
function __hexad_complete
    set -l words (commandline -opc) (commandline -ct)
    for line in ($words[1] __complete $words[2..-1] 2> /dev/null)
        if test $line = :files
            set -l parts (string split -m 1 = -- $words[-1])
            if set -q parts[2]
                printf "$parts[1]=%s\n" (__fish_complete_path $parts[2])
            else
                __fish_complete_path $words[-1]
            end
        else
            echo $line
        end
    end
end
complete -c hexad -f -a '(__hexad_complete)'
