// expect: build missing_function; says "flash_attn_forward_cuda"; Handed in before it was begun.
