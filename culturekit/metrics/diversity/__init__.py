"""The diversity of labelled images: Vendi scores of label kernels, of general kernels and of batches."""
