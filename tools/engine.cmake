# Read by CMake at the end of configuring the engine (`tools/make_env.py` names it). It shortens the compilation and
# leaves alone what decodes: ggml, llama, sampling, drafting and the server keep llama.cpp's release options. Vision is
# linked and never called by this project; arguments, templates, downloads and HTTP run once a process or a request. The
# parser of chats keeps them too: a server that streams parses the whole text again at every token, beside the decoding.
if(NOT CMAKE_SOURCE_DIR STREQUAL CMAKE_CURRENT_SOURCE_DIR)
    return()
endif()

function(specbook_shorten_compilation)
    if(TARGET mtmd)
        target_compile_options(mtmd PRIVATE -O0)
    endif()
    if(TARGET cpp-httplib)
        target_compile_options(cpp-httplib PRIVATE -O1)
    endif()
    if(TARGET llama-common)
        get_target_property(folder llama-common SOURCE_DIR)
        get_target_property(sources llama-common SOURCES)
        file(GLOB seldom
            ${folder}/arg.cpp ${folder}/chat*.cpp ${folder}/peg-parser.cpp ${folder}/json-schema*.cpp
            ${folder}/download.cpp ${folder}/hf-cache.cpp ${folder}/preset.cpp
            ${folder}/jinja/*.cpp ${folder}/parsers/*.cpp)
        list(REMOVE_ITEM seldom ${folder}/chat.cpp ${folder}/chat-peg-parser.cpp ${folder}/peg-parser.cpp)
        set_source_files_properties(${seldom} TARGET_DIRECTORY llama-common PROPERTIES COMPILE_OPTIONS -O0)
        # Of an inline function that several files hold, the linker keeps the first: the optimised files stand first.
        list(TRANSFORM sources PREPEND ${folder}/ REGEX "^[^/$]")
        list(REMOVE_ITEM sources ${seldom})
        set_property(TARGET llama-common PROPERTY SOURCES ${sources} ${seldom})
    endif()
endfunction()

cmake_language(DEFER CALL specbook_shorten_compilation)
