module quipu-regexp-oracle

go 1.19
