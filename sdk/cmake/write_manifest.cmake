# Writes <library>.hexad.json: what the host checks before it maps a byte of the plugin's code.
file(SHA256 ${LIBRARY} sha256)
file(SIZE ${LIBRARY} size)
get_filename_component(folder ${LIBRARY} DIRECTORY)
get_filename_component(file ${LIBRARY} NAME)
get_filename_component(stem ${LIBRARY} NAME_WLE)
string(REPLACE "," "\", \"" memory "${MEMORY}")
set(requires "")
if(TORCH)
  set(requires "\"libtorch\": \"${TORCH}\"")
endif()
file(WRITE ${folder}/${stem}.hexad.json "{
  \"format\": 1,
  \"kind\": \"${KIND}\",
  \"name\": \"${NAME}\",
  \"version\": \"${VERSION}\",
  \"library\": \"${file}\",
  \"abi\": {\"major\": 1, \"min_host_minor\": 0},
  \"arch\": \"${ARCH}\",
  \"sha256\": \"${sha256}\",
  \"size\": ${size},
  \"memory\": [\"${memory}\"],
  \"requires\": {${requires}},
  \"license\": \"${LICENSE}\"
}
")
